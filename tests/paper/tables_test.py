import math
import statistics

import numpy
import pandas
import pytest
from scipy import stats

from elmo_tasks.paper.figures import draw, epoch_values, mix_table, size_values
from elmo_tasks.paper.findings import findings
from elmo_tasks.paper.intrinsic_tables import (
    neighbor_table,
    word_sense_notes,
    word_sense_table,
)
from elmo_tasks.paper.run_scores import runs_of, side_by_side
from elmo_tasks.paper.tables import notes, table
from elmo_tasks.paper.word_senses import measure_senses
from elmo_tasks.paper.wsd_corpus import WsdCorpus
from elmo_tasks.version import __version__
from tests.paths import TINY_BILM

BASELINE, ELMO = [60.0, 61.5, 62.1], [70.2, 72.0, 71.1]


def scores_of(
    task,
    variant,
    dev,
    *,
    test=None,
    size=None,
    epochs=(),
    mix=(),
    training_size=None,
    version=__version__,
):
    runs = []
    for seed, value in enumerate(dev, start=1):
        run = {
            "versions": {"elmo_tasks": version},
            "task": task,
            "variant": variant,
            "seed": seed,
            "size": size,
            "training_size": training_size,
            "dev": value,
            "test": (test or dev)[seed - 1],
            "epochs": list(epochs) or [value],
            "mix": list(mix),
        }
        runs.append(run)
    return runs


def snli(baseline=BASELINE, elmo=ELMO):
    return runs_of(scores_of("snli", "baseline", baseline) + scores_of("snli", "both", elmo))


def test_runs_are_compared_with_the_same_earlier_runs():
    (first, second) = side_by_side(snli(elmo=[71.0]), snli(baseline=[60.0], elmo=ELMO)).to_dict(
        "records"
    )
    assert (first["variant"], first["seed"], first["dev, difference"]) == ("baseline", 1, 0)
    assert (second["variant"], second["seed"]) == ("both", 1)
    assert (second["dev, earlier"], second["dev, new"], second["test, difference"]) == (
        70.2,
        71.0,
        0.8,
    )


class TestTable1:
    def test_means_deviations_and_increases(self):
        (row,) = table("table 1", snli(), {"snli": "18,000 pairs"}).to_dict("records")
        means = statistics.fmean(BASELINE), statistics.fmean(ELMO)
        assert row["baseline"] == f"{means[0]:.1f} ± {statistics.stdev(BASELINE):.1f} (3)"
        assert row["ELMo"] == f"{means[1]:.1f} ± {statistics.stdev(ELMO):.1f} (3)"
        increase = means[1] - means[0]
        assert (
            row["increase (relative)"]
            == f"+{increase:.1f} (+{100 * increase / (100 - means[0]):.1f}%)"
        )
        assert (row["trained on"], row["paper: trained on"]) == ("18,000 pairs", "549,367 pairs")
        assert row["paper: increase (relative)"] == "0.7 (5.8%)"

    def test_epochs_until_the_end_and_the_best_one_are_means_over_seeds(self):
        baseline = [
            *scores_of("snli", "baseline", [60.0], epochs=[50.0, 60.0, 55.0, 59.0]),
            *scores_of("snli", "baseline", [61.0], epochs=[50.0, 51.0, 52.0, 61.0, 60.0, 55.0]),
        ]
        elmo = scores_of("snli", "both", [70.0], epochs=[70.0, 69.0])
        (row,) = table("table 1", runs_of([*baseline, *elmo]), {}).to_dict("records")
        assert row["epochs (best)"] == "5 (3) / 2 (1)"

    def test_a_transformer_has_a_column_if_any_task_has_it(self):
        assert "frozen transformer" not in table("table 1", snli(), {})
        runs = runs_of(
            [*scores_of("snli", "both", [71.0]), *scores_of("snli", "both-transformer", [75.0])]
        )
        squad = runs_of(scores_of("squad", "both", [64.0]))
        rows = table("table 1", pandas.concat([runs, squad]), {})
        assert rows["frozen transformer"].tolist() == ["–", "75.0 (1 seed)"]
        assert rows["ELMo"].tolist() == ["64.0 (1 seed)", "71.0 (1 seed)"]
        assert rows.columns.get_loc("frozen transformer") == rows.columns.get_loc("ELMo") + 1
        assert rows["epochs (best)"].tolist() == ["– / 1 (1) / –", "– / 1 (1) / 1 (1)"]

    def test_welchs_test_matches_its_formula(self):
        first, second = numpy.array([45.1, 47.9, 46.0]), numpy.array([48.3, 47.2, 49.9])
        variances = first.var(ddof=1) / 3, second.var(ddof=1) / 3
        t = (second.mean() - first.mean()) / math.sqrt(sum(variances))
        freedom = sum(variances) ** 2 / sum(variance**2 / 2 for variance in variances)
        (row,) = table("table 1", snli(first, second), {}).to_dict("records")
        assert row["p"] == f"{2 * stats.t.sf(abs(t), freedom):.3f}"

    def test_the_paired_test_matches_its_formula_over_the_common_seeds(self):
        first, second = [45.1, 47.9, 46.0], [46.3, 48.2, 47.9, 50.0]
        differences = numpy.array(second[:3]) - first
        t = differences.mean() / (differences.std(ddof=1) / math.sqrt(3))
        (row,) = table("table 1", snli(first, second), {}).to_dict("records")
        assert row["p, paired"] == f"{2 * stats.t.sf(abs(t), 2):.3f}"

    @pytest.mark.parametrize(
        ("baseline", "elmo", "p"),
        [
            ([60.0], [70.0], "n too small"),
            ([60.0, 60.0], [70.0, 70.0], "no variance"),
            ([60.0, 61.0], [70.0, 70.5], "0.011 (n too small to trust)"),
            ([60.0], [], "–"),
        ],
    )
    def test_few_seeds(self, baseline, elmo, p):
        (row,) = table("table 1", snli(baseline, elmo), {}).to_dict("records")
        assert row["p"] == p

    def test_squad_is_scored_on_dev_and_parts_of_training_sets_are_left_out(self):
        squad = scores_of("squad", "baseline", [60.0], test=[0.0]) + scores_of(
            "squad", "both", [64.0], test=[0.0]
        )
        parts = scores_of("snli", "baseline", [33.0], size=180) + scores_of(
            "snli", "baseline", [60.0]
        )
        rows = table("table 1", runs_of(squad + parts), {}).to_dict("records")
        assert [(row["task"], row["measure"], row["baseline"], row["ELMo"]) for row in rows] == [
            ("SQuAD", "F1, dev", "60.0 (1 seed)", "64.0 (1 seed)"),
            ("SNLI", "accuracy, test", "60.0 (1 seed)", "–"),
        ]


class TestVersions:
    """Scores by a different version of the package."""

    def test_a_mean_with_them_has_a_mark_and_a_note(self):
        earlier = scores_of("snli", "baseline", [60.0], version="0.0.1")
        unknown = [{**run, "versions": {}} for run in scores_of("snli", "both-l2-1", [72.0])]
        runs = runs_of(
            [
                *earlier,
                *scores_of("snli", "baseline", [61.0]),
                *scores_of("snli", "both", [71.0]),
                *unknown,
            ]
        )
        (row, _) = table("table 2", runs, {}).to_dict("records")
        assert row["baseline"].endswith("(2)§") and row["all layers, λ=1"] == "72.0 (1 seed)§"
        assert row["all layers, λ=0.001"] == "71.0 (1 seed)"
        (note,) = (note for note in notes("table 2", runs) if "§" in note)
        assert __version__ in note and note.endswith("0.0.1 (1), not recorded (1).")

    def test_without_them_there_is_no_note(self):
        assert not any("§" in note for note in notes("table 1", snli()))

    def test_word_senses(self):
        sets = {"the four": {"f1": 0.5604}, "ALL": {"f1": 0.5532}}
        senses = {
            "wordnet": False,
            "scores": {"layer 1": sets},
            "versions": {"elmo_tasks": "0.0.1"},
        }
        assert (
            word_sense_table(senses).set_index("model").loc["biLM, first layer", "ALL"] == "55.3§"
        )

    def test_runs_next_to_earlier_ones_name_both(self):
        new, earlier = (
            runs_of(scores_of("snli", "both", [71.0], version=name))
            for name in (__version__, "0.0.1")
        )
        (row,) = side_by_side(new, earlier).to_dict("records")
        assert (row["version, earlier"], row["version, new"]) == ("0.0.1", __version__)


class TestOtherTables:
    def test_table_2_has_our_scores_on_dev_above_the_papers(self):
        variants = {"baseline": 57.0, "input-top": 65.0, "input-l2-1": 66.0, "input": 67.0}
        runs = runs_of(
            [
                row
                for name, dev in variants.items()
                for row in scores_of("srl", name, [dev], test=[0.0])
            ]
        )
        ours, quoted = (
            table("table 2", runs, {}).drop(columns=["trained on", "measure"]).to_numpy().tolist()
        )
        assert ours[:5] == [
            "SRL",
            "57.0 (1 seed)",
            "65.0 (1 seed)",
            "66.0 (1 seed)",
            "67.0 (1 seed)",
        ]
        assert ours[5:] == ["+10.0 (+23.3%)", "1 (1) / 1 (1) / 1 (1) / 1 (1)", "n too small"]
        assert quoted == ["SRL, paper", "81.6", "84.1", "84.6", "84.8", "", "", ""]

    def test_the_papers_numbers_are_cited_by_table(self):
        runs = runs_of(scores_of("squad", "input", [64.0]) + scores_of("squad", "both", [68.0]))
        _, printed = table("table 3", runs, {}).to_dict("records")
        columns = ("input", "input and output", "output")
        assert [printed[name] for name in columns] == ["85.1", "85.6", "84.8"]
        assert any("Table 3 of Peters et al. 2018" in note for note in notes("table 3", runs))

    def test_table_4_has_our_neighbours_next_to_the_papers(self):
        nearest = [
            {"sentence": "a [play] 0", "cosine": 0.9},
            {"sentence": "a [play] 1", "cosine": 0.8},
        ]
        neighbors = {
            "glove": [("plays", 0.9), ("game", 0.8)],
            "biLM": [{"nearest": nearest}, {"nearest": nearest}],
        }
        rows = neighbor_table(neighbors).to_dict("records")
        assert len(rows) == 5
        ours = [row["ours, nearest first"] for row in rows]
        assert ours[:3] == ["plays, game", "a [play] 0 (0.90)", "a [play] 1 (0.80)"]
        assert rows[1]["paper"].startswith("Kieffer")
        assert rows[2]["paper"] == ""

    def test_table_6_has_a_row_for_each_layer(self):
        layers = enumerate([86.5, 93.65, 92.9])
        runs = runs_of(
            [row for layer, dev in layers for row in scores_of("pos", f"layer-{layer}", [dev])]
        )
        rows = table("table 6", runs, {}).set_index("model")
        assert rows["dev"].tolist()[:3] == ["86.5 (1 seed)", "93.7 (1 seed)", "92.9 (1 seed)"]
        assert rows.loc["biLM, first layer", "paper, Wall Street Journal"] == 97.3

    def test_table_5_has_f1_in_percent(self):
        sets = {"the four": {"f1": 0.5604}, "ALL": {"f1": 0.5532}}
        scores = {"layer 1": sets, "first sense": sets}
        made = word_sense_table(
            {"wordnet": False, "scores": scores, "versions": {"elmo_tasks": __version__}}
        )
        rows = made.set_index("model")
        assert rows.loc["biLM, first layer"].tolist() == ["56.0", "55.3", 67.4]
        assert rows.loc["WordNet 1st sense"].tolist() == ["–", "–", 65.9]

    def test_word_senses_below_the_most_frequent_sense_are_named_first(self):
        def notes_with(ours):
            sets = {"layer 2": {"the four": {"f1": ours}}, "first sense": {"the four": {"f1": 0.6}}}
            about = dict.fromkeys(("bilm", "training", "distance", "first_senses"), "x")
            counts = {"sets": {}, "senses": 1, "instances_of_training": 1}
            return word_sense_notes({"scores": sets, **about, **counts})

        assert "scores below the most frequent sense (60.0)" in notes_with(0.592)[0]
        assert not any("below the most" in note for note in notes_with(0.61))

    def test_word_senses_without_all_sets_of_the_paper(self, fixtures_root):
        (training,) = WsdCorpus.find(fixtures_root / "wsd" / "train")
        measured = measure_senses(str(TINY_BILM), fixtures_root / "wsd")
        assert measured["training"] == training.name
        assert "the four" not in measured["scores"]["layer 2"]
        assert word_sense_notes(measured)[0].startswith("The four: ")
        ours = word_sense_table(measured).set_index("model").loc["biLM, second layer"]
        f1 = measured["scores"]["layer 2"]["ALL"]["f1"]
        assert ours.tolist() == [f"{100 * f1:.1f}§", 69.0]


class TestFindings:
    def rows(self, **runs):
        empty = runs_of(scores_of("pos", "layer-0", [1.0]))
        exhibits = ("table 1", "table 2", "table 3", "table 6", "figure 1")
        by_exhibit = {name: runs.get(name.replace(" ", "_"), empty) for name in exhibits}
        return findings(by_exhibit).set_index("the paper")

    def test_a_claim_lists_the_tasks_for_which_it_holds(self):
        sst = scores_of("sst", "baseline", [50.0, 51.0]) + scores_of("sst", "both", [49.0, 50.0])
        srl = scores_of("srl", "baseline", [60.0, 61.0]) + scores_of("srl", "input", [65.0])
        # Not shown as different.
        ner = scores_of("ner", "baseline", [60.0]) + scores_of("ner", "input", [60.04])
        runs = pandas.concat([snli(), runs_of(sst + srl + ner)])
        row = self.rows(table_1=runs).loc["ELMo beats the baseline (Table 1)"]
        assert row.tolist() == [
            "SNLI (+9.9), SRL (+4.5, 1 seed)",
            "NER (+0.0, 1 seed), SST-5 (-1.0)",
            "SNLI",
        ]

    def test_epochs_until_elmo_reaches_the_best_of_the_baseline(self):
        baseline = scores_of("snli", "baseline", [60.0, 60.0], epochs=[50.0, 55.0, 60.0, 59.0])
        elmo = scores_of("snli", "both", [70.0, 70.0], epochs=[59.0, 61.0, 70.0])
        late = scores_of("ner", "baseline", [60.0], epochs=[60.0, 50.0])
        late += scores_of("ner", "input", [59.0], epochs=[50.0, 59.0])
        row = self.rows(table_1=runs_of(baseline + elmo + late)).loc[
            "ELMo reaches the baseline's best score in fewer epochs (Figure 1)"
        ]
        assert row[["yes", "no"]].tolist() == ["SNLI (2 instead of 3)", "NER (0 of 1 seeds)"]

    def test_gains_with_parts_of_the_training_set(self):
        runs = []
        # A thousandth is not in the claims.
        scores = {18: (30, 60), 180: (40, 42), 1800: (50, 65), None: (60, 70)}
        for size, (baseline, elmo) in scores.items():
            settings = {"size": size, "training_size": size or 18000}
            runs += scores_of("snli", "baseline", [float(baseline)], **settings)
            runs += scores_of("snli", "both", [float(elmo)], **settings)
        rows = self.rows(figure_1=runs_of(runs))
        assert rows.loc["ELMo gains more with a hundredth of the data (Figure 1)", "no"] == (
            "SNLI (+2.0 instead of +10.0, 1 seed)"
        )
        assert rows.loc["ELMo gains more with a tenth of the data (Figure 1)", "yes"] == (
            "SNLI (+15.0 instead of +10.0, 1 seed)"
        )


class TestFigures:
    def runs(self):
        mix = [{"place": "input", "weights": [0.2, 0.5, 0.3], "gamma": 1.5}]
        scored = [
            *scores_of("snli", "baseline", [40.0, 42.0], size=180, training_size=180),
            *scores_of("snli", "both", [50.0, 54.0], size=180, training_size=180),
            *scores_of("snli", "baseline", [60.0], training_size=1000, epochs=[55.0, 60.0]),
            *scores_of("snli", "both", [70.0], training_size=1000, epochs=[69.0, 70.0], mix=mix),
        ]
        return runs_of(scored)

    def test_figures_have_the_scores_of_sizes_and_epochs(self):
        of_sizes, of_epochs = size_values(self.runs()), epoch_values(self.runs())
        means = of_sizes.groupby(["training examples", "model"])["score"].mean().to_dict()
        assert means == {
            (180, "baseline"): 41,
            (180, "ELMo"): 52,
            (1000, "baseline"): 60,
            (1000, "ELMo"): 70,
        }
        scores = of_epochs.groupby(["epoch", "model"])["score"].mean().to_dict()
        assert scores == {
            (1, "baseline"): 55,
            (1, "ELMo"): 69,
            (2, "baseline"): 60,
            (2, "ELMo"): 70,
        }
        assert mix_table(self.runs()).to_numpy().tolist() == [
            ["snli", "input", 0.2, 0.5, 0.3, 1.5, 1]
        ]

    @pytest.mark.parametrize("exhibit", ["figure 1", "figure 2"])
    def test_equal_values_give_identical_files(self, tmp_path, exhibit):
        first, second = (
            draw(exhibit, self.runs(), tmp_path / name) for name in ("first", "second")
        )
        assert [path.suffix for path in first[:3]] == [".svg", ".png", ".csv"]
        assert first[1].read_bytes().startswith(b"\x89PNG") and "<svg" in first[0].read_text()
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
