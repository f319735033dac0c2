"""Tests of the findings of the paper next to ours."""

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.replication import Exhibit, Results
from elmo_tasks.replication.report.findings import findings
from elmo_tasks.replication.report.plan_results import PlanResults
from tests.paths import BILM_RESULTS


def _like(source: Path, target: Path, **changes: Any) -> None:
    """Writes a result file as another one, with some keys changed."""
    target.write_text(json.dumps({**json.loads(source.read_text()), **changes}))


def results(table: str, scores: dict[tuple[str, str], list[float]]) -> Results:
    """Scores on dev and test alike, by task and variant, for seeds from 1 on."""
    metrics = {"snli": "accuracy", "sst": "accuracy", "srl": "f1", "pos": "accuracy"}
    runs = [
        {"task": task, "variant": variant, "seed": seed, "metric": metrics[task], "dev": score, "test": score}
        for (task, variant), of_seeds in scores.items()
        for seed, score in enumerate(of_seeds, 1)
    ]
    return Results(table, runs)


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


@pytest.fixture
def write(tmp_path):
    """Writes a result file: `write(name, results)`."""

    def written(name: str, content: Results) -> Path:
        (tmp_path / name).write_text(content.to_json({}))
        return tmp_path / name

    return written


class TestFindings:
    def test_each_task_is_judged(self, write):
        """Oracle: by hand: higher, lower, of one seed, and within the deviation of the seeds."""
        path = write(
            "table1.json",
            results(
                "table 1",
                {
                    ("snli", "baseline"): [50.0, 50.2],
                    ("snli", "both"): [60.0, 60.2],
                    ("sst", "baseline"): [40.0, 44.0],
                    ("sst", "both"): [41.0, 45.0],
                    ("srl", "baseline"): [70.0],
                    ("srl", "input"): [69.0],
                },
            ),
        )
        assert rows(findings([path])) == [
            [
                "ELMo is better than the baseline",
                "Table 1",
                "SNLI 50.1 → 60.1; SRL 70.0 → 69.0; SST-5 42.0 → 43.0",
                "yes: SNLI (two seeds), SST-5 (not significant); no: SRL (one seed)",
            ]
        ]

    def test_a_column_may_be_better_than_one_before_it(self, write):
        """Oracle: by hand, for Tables 3 and 6; the findings of Table 3 are of the tasks that the paper has them for."""
        places = {("srl", "input"): [50.0], ("srl", "both"): [49.0], ("srl", "output"): [40.0]}
        layers = {("pos", "layer-0"): [80.0], ("pos", "layer-1"): [90.0], ("pos", "layer-2"): [89.0]}
        paths = [write("3.json", results("table 3", places)), write("6.json", results("table 6", layers))]
        assert [row[2:] for row in rows(findings(paths))] == [
            ["SRL 40.0 → 49.0", "yes: SRL (one seed)"],
            ["SRL 49.0 → 50.0", "yes: SRL (one seed)"],
            ["POS 89.0 → 90.0", "yes: POS (one seed)"],
        ]

    def test_scores_that_look_alike_are_equal(self, write):
        """Oracle: nobody can see an order in 67.6 → 67.6."""
        of_lambda = {("srl", "input-l2-1"): [67.56], ("srl", "input"): [67.64]}
        others = {("srl", "baseline"): [50.0], ("srl", "input-top"): [49.98]}
        path = write("2.json", results("table 2", of_lambda | others))
        assert [row[2:] for row in rows(findings([path]))] == [
            ["SRL 50.0 → 50.0", "equal: SRL (one seed)"],
            ["SRL 50.0 → 67.6", "yes: SRL (one seed)"],
            ["SRL 67.6 → 67.6", "equal: SRL (one seed)"],
        ]

    def test_the_runs_of_the_plan_are_judged_too(self, write):
        """Oracle: by hand: a task with one of both scores is not there."""
        of_plan = {("snli", "baseline"): [55.0], ("snli", "both"): [65.0], ("sst", "baseline"): [30.0]}
        plan = PlanResults({Exhibit.TABLE_1: results("table 1", of_plan)})
        layers = {("pos", "layer-1"): [90.0], ("pos", "layer-2"): [89.0]}
        assert [row[2] for row in rows(findings([write("6.json", results("table 6", layers))], plan))] == [
            "SNLI 55.0 → 65.0",
            "POS 89.0 → 90.0",
        ]

    @pytest.mark.parametrize(
        ("of_baseline", "of_elmo", "less_data", "fewer_epochs"),
        [
            (
                [20.0, 50.0],
                [31.0, 60.0],
                ["SRL +11.0 with 100, +10.0 with 1,000", "yes: SRL (one seed)"],
                ["SRL epoch 3 → 2", "yes: SRL (two seeds)"],
            ),
            ([20.0, 50.0], [25.0, 60.0], ["SRL +5.0 with 100, +10.0 with 1,000", "no: SRL (one seed)"], None),
            ([20.0, 50.0], [30.04, 60.0], ["SRL +10.0 with 100, +10.0 with 1,000", "equal: SRL (one seed)"], None),
            ([20.0], [31.0], None, ["SRL epoch 3 → 2", "yes: SRL (two seeds)"]),
        ],
    )
    def test_figure_1_is_judged_by_its_increases_and_epochs(self, of_baseline, of_elmo, less_data, fewer_epochs):
        """Oracle: by hand; without the whole training set, or with its part alone, there is nothing to compare."""

        def of(scores: dict[str, list[float]], x: str, numbers: list[int], n: int) -> list[dict[str, Any]]:
            return [
                {"task": "srl", "variant": variant, x: number, "mean": mean, "sd": 0.5, "n": n}
                for variant, means in scores.items()
                for number, mean in zip(numbers, means, strict=False)
            ]

        sizes = of({"baseline": of_baseline, "input": of_elmo}, "size", [100, 1000], 1)
        epochs = of({"baseline": [30.0, 40.0, 50.0], "input": [45.0, 55.0, 54.0]}, "epoch", [1, 2, 3], 2)
        plan = PlanResults(sizes=sizes, epochs=epochs if fewer_epochs else [], training_sizes={"srl": 1000})
        expected = [["Figure 1", *cells] for cells in (less_data, fewer_epochs) if cells]
        assert [row[1:] for row in rows(findings([], plan))] == expected

    @pytest.mark.parametrize(
        ("of_elmo", "cell", "verdict"),
        [
            ([30.0, 49.0], "SRL epoch 2 → none", "no: SRL (not tested)"),
            ([40.0, 50.0], "SRL epoch 2 → 2", "no: SRL (not tested)"),
        ],
    )
    def test_epochs_that_elmo_does_not_save(self, of_elmo, cell, verdict):
        """Oracle: by hand."""
        epochs = [
            {"task": "srl", "variant": variant, "epoch": epoch, "mean": mean, "sd": 0.5, "n": 3}
            for variant, means in (("baseline", [30.0, 50.0]), ("input", of_elmo))
            for epoch, mean in enumerate(means, 1)
        ]
        assert rows(findings([], PlanResults(epochs=epochs)))[0][2:] == [cell, verdict]
        assert rows(findings([], PlanResults(epochs=epochs[:2]))) == []

    def test_word_senses_and_fine_tuning_have_files_of_their_own(self, tmp_path):
        """Oracle: by hand."""
        senses = {"layer 1": {"the four": {"f1": 0.561}}, "layer 2": {"the four": {"f1": 0.55}}}
        _like(BILM_RESULTS / "table5.json", tmp_path / "5.json", scores=senses)
        tuned = json.loads((BILM_RESULTS / "table7.json").read_text())["rows"][2]
        assert tuned["text"] == "squad-questions"
        _like(BILM_RESULTS / "table7.json", tmp_path / "7.json", rows=[tuned | {"before": 99.6, "after": 50.4}])
        assert [row[1:] for row in rows(findings([tmp_path / "7.json", tmp_path / "5.json"]))] == [
            ["Table 5", "F1 56.1 → 55.0", "no: F1"],
            ["Table 7", "SQuAD questions 100 → 50", "yes: SQuAD questions"],
        ]

    def test_word_senses_of_one_layer_show_no_finding(self, tmp_path):
        """Oracle: the finding compares two layers."""
        _like(BILM_RESULTS / "table5.json", tmp_path / "5.json", scores={"layer 1": {"the four": {"f1": 0.561}}})
        assert rows(findings([tmp_path / "5.json"])) == []

    @pytest.mark.parametrize("content", ["[]", "3", '{"table": "table 5"}', '{"table": "table 7", "rows": [{}]}'])
    def test_a_file_that_is_no_result_file_is_named(self, tmp_path, content):
        """Oracle: the name of the file."""
        (tmp_path / "odd.json").write_text(content)
        with pytest.raises(ValueError, match=r"odd\.json must be"):
            findings([tmp_path / "odd.json"])
