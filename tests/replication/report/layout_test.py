"""Tests of Tables 1 to 3."""

import pytest
from scipy.stats import ttest_ind_from_stats, ttest_rel

from elmo_tasks.replication import Results, layout


def row(task: str, variant: str, mean: float, sd: float | None, n: int, split: str = "test") -> dict:
    metric = {"ner": "f1-measure-overall", "squad": "f1"}.get(task, "accuracy")
    return {"task": task, "variant": variant, "metric": metric, "split": split, "mean": mean, "sd": sd, "n": n}


class TestTable1:
    def test_our_scores_are_next_to_the_papers(self):
        """Oracle: by hand; Welch's p for these was computed with scipy from t = 6.60 and 3.99 degrees of freedom."""
        rows = [row("ner", "baseline", 29.12, 1.70, 3), row("ner", "input", 38.02, 1.60, 3)]
        table = layout(Results("table 1", [], rows))
        assert table.rows == [
            [
                *("NER", "F1, test", "29.12 ± 1.70 (3)", "38.02 ± 1.60 (3)", "+8.90 (+12.6%)", "0.003", "–"),
                *("91.93 (Peters et al. 2017)", "90.15", "92.22 ± 0.10", "2.06 (21.0%)"),
            ]
        ]
        assert len(table.columns) == len(table.rows[0])

    def test_squad_is_scored_on_dev_and_one_seed_has_no_p(self):
        """Oracle: by hand."""
        rows = [row("squad", "baseline", 60.0, None, 1, "dev"), row("squad", "both", 65.0, None, 1, "dev")]
        cells = layout(Results("table 1", [], rows)).rows[0]
        assert cells[1:7] == ["F1, dev", "60.00 (1)", "65.00 (1)", "+5.00 (+12.5%)", "n too small", "–"]

    def test_a_task_without_a_test_set_is_named(self):
        """Oracle: the caption; a task with scores is not."""
        runs = [
            {"task": task, "variant": "baseline", "seed": 1, "metric": "accuracy", "dev": 50.0, "test": test}
            for task, test in (("sst", None), ("snli", 40.0))
        ]
        table = layout(Results("table 1", runs))
        assert "; SST-5: without a test set, so without a score." in table.caption[0]

    def test_runs_with_the_same_seed_are_pairs(self):
        """Oracle: SciPy's paired test of the pairs, without the seed that one of the two has alone."""
        scores = {"baseline": {1: 50.0, 2: 51.0, 3: 53.0, 4: 10.0}, "both": {3: 60.0, 1: 56.0, 2: 59.0}}
        metric = {"task": "snli", "metric": "accuracy", "dev": 0.0}
        runs = [
            {**metric, "variant": variant, "seed": seed, "test": score}
            for variant, by_seed in scores.items()
            for seed, score in by_seed.items()
        ]
        table = layout(Results("table 1", runs))
        assert table.columns[6] == "p, paired"
        assert table.rows[0][6] == f"{ttest_rel([56, 59, 60], [50, 51, 53]).pvalue:.3f}"
        assert "paired t-test over the seeds that both have" in table.caption[0]
        two = layout(Results("table 1", [row for row in runs if row["seed"] > 2]))
        assert two.rows[0][6] == "n too small"

    def test_two_seeds_have_a_p_that_is_not_to_be_trusted(self):
        """Oracle: by hand."""
        rows = [row("snli", "baseline", 55.0, 0.1, 2), row("snli", "both", 69.0, 0.5, 2)]
        assert layout(Results("table 1", [], rows)).rows[0][5].endswith("(n too small to trust)")

    def test_transformers_have_columns_after_elmo(self):
        """Oracle: by hand; one that a task lacks is a dash there, and the caption names the checkpoint."""
        runs = [
            {"task": task, "variant": variant, "seed": 1, "metric": metric, "dev": 1.0, "test": score}
            for task, metric, variant, score in (
                ("ner", "f1-measure-overall", "baseline", 30.0),
                ("ner", "f1-measure-overall", "input", 40.0),
                ("ner", "f1-measure-overall", "input-bert", 45.0),
                ("ner", "f1-measure-overall", "input-gpt", 35.0),
                ("snli", "accuracy", "both-bert", 80.0),
            )
        ]
        table = layout(Results("table 1", runs, about={"ner": {"transformer bert": "bert-base-cased"}}))
        assert table.columns[2:7] == ["baseline", "ELMo", "bert", "gpt", "increase (relative)"]
        cells = {row[0]: row[2:7] for row in table.rows}
        assert cells["NER"] == ["30.00 (1)", "40.00 (1)", "45.00 (1)", "35.00 (1)", "+10.00 (+14.3%)"]
        assert cells["SNLI"] == ["–", "–", "80.00 (1)", "–", "–"]
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert "transformer bert: bert-base-cased" in " ".join(table.caption)

    def test_what_was_not_run_is_a_dash(self):
        """Oracle: by hand."""
        table = layout(Results("table 1", [], [row("snli", "baseline", 55.0, 0.1, 2)]))
        assert table.rows[0][3:6] == ["–", "–", "–"]

    def test_the_caption_names_data_bilm_settings_and_differences(self):
        """Oracle: the words."""
        about = {"ner": {"data": "WNUT-17", "bilm": "small", "overrides": {"trainer.num_epochs": 14}, "arguments": {}}}
        rows = [row("ner", "baseline", 29.12, 1.70, 3)]
        table = layout(Results("table 1", [], rows, about, ["torch 2.13"], ["A note."], ["By hand."]))
        caption = " ".join(table.caption)
        for words in (
            "WNUT-17",
            "biLM: small",
            '{"trainer.num_epochs": 14}',
            "Senna",
            "A note.",
            "NAACL",
        ):
            assert words in caption
        assert table.runs == ["Made with torch 2.13.", "By hand."]


class TestAblations:
    def test_table_2_compares_on_dev(self):
        """Oracle: by hand, and the paper's row."""
        means = {"baseline": 55.0, "both-top": 65.0, "both-l2-1": 66.0, "both": 70.0}
        rows = [row("snli", name, mean, 1.0, 3, "dev") for name, mean in means.items()]
        table = layout(Results("table 2", [], rows))
        assert table.columns[2:6] == ["baseline", "last layer only", "all layers, λ=1", "all layers, λ=0.001"]
        assert [cell[:5] for cell in table.rows[0][2:6]] == ["55.00", "65.00", "66.00", "70.00"]
        assert table.rows[0][6] == "+15.00 (+33.3%)"
        assert table.rows[1] == ["SNLI, paper", "accuracy", "88.1", "89.1", "89.3", "89.5", "", ""]

    def test_table_3_has_the_papers_order(self):
        """Oracle: by hand, and the paper's row."""
        rows = [row("snli", name, 60.0, 1.0, 3, "dev") for name in ("input", "both", "output")]
        table = layout(Results("table 3", [], rows))
        assert table.columns[2:5] == ["input", "input and output", "output"]
        assert table.rows[0][5:] == ["+0.00 (+0.0%)", "1.000"]
        assert table.rows[1][2:5] == ["88.9", "89.5", "88.7"]

    def test_table_6_has_a_row_for_each_layer_and_the_papers_below(self):
        """Oracle: by hand; p from scipy's Welch test of the same summaries."""
        means = {"layer-0": 86.8, "layer-1": 93.7, "layer-2": 93.0}
        rows = [row("pos", name, mean, 0.1, 3, split) for name, mean in means.items() for split in ("dev", "test")]
        table = layout(Results("table 6", [], rows))
        assert table.rows[:3] == [
            ["biLM, context-insensitive layer", "86.80 ± 0.10 (3)", "86.80 ± 0.10 (3)", "–"],
            ["biLM, first layer", "93.70 ± 0.10 (3)", "93.70 ± 0.10 (3)", "97.3"],
            ["biLM, second layer", "93.00 ± 0.10 (3)", "93.00 ± 0.10 (3)", "96.8"],
        ]
        assert ["Collobert et al. 2011", "–", "–", "97.3"] in table.rows
        p = ttest_ind_from_stats(93.7, 0.1, 3, 93.0, 0.1, 3, equal_var=False).pvalue
        assert f"-0.70 (-11.1%), p (Welch's t-test, two-sided): {p:.3f}" in table.caption[0]

    @pytest.mark.parametrize(("table", "task"), [("table 1", "pos"), ("table 2", "ner"), ("table 6", "snli")])
    def test_scores_of_a_task_that_is_not_in_the_table_are_refused(self, table, task):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=f"but has scores of {task}"):
            layout(Results(table, [], [row(task, "baseline", 50.0, 1.0, 3)]))

    def test_there_is_no_other_table(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="'table 4'"):
            layout(Results("table 4", []))
