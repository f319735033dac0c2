"""Tests of result files."""

import json

import pytest

from elmo_tasks.replication import FinishedRun, Results, Summary

RUN = {"task": "snli", "variant": "both", "seed": 1, "metric": "accuracy", "dev": 70.0, "test": 69.0}
SUMMARY = {"task": "sst", "variant": "both", "metric": "accuracy", "split": "test", "mean": 42.0, "sd": 1.0, "n": 2}


class TestResults:
    def test_scores_of_runs_are_percent(self, make_run, finish):
        """Oracle: by hand."""
        runs = [
            finish(make_run(seed=1), 0.5, 0.25),
            finish(make_run(seed=2), 0.75, 0.5),
            finish(make_run("squad"), 0.625, None),
        ]
        results = Results.of_runs("table 1", map(FinishedRun.of, runs))
        assert results.summary("snli", "both", "test") == Summary.of([25.0, 50.0])
        assert results.summary("snli", "both", "dev") == Summary.of([50.0, 75.0])
        assert results.summary("squad", "both", "test") is None
        assert results.tasks() == ["squad", "snli"]
        assert results.about["snli"]["data"] == "data of snli"
        assert len(results.versions) == 1 and "torch" in results.versions[0]

    def test_a_file_is_read_as_it_was_written(self, tmp_path):
        """Oracle: the results themselves; what was computed is not read back."""
        results = Results("table 1", [RUN], [SUMMARY], {"snli": {"data": "λ"}}, ["torch 2"], ["A note."])
        (tmp_path / "a.json").write_text(results.to_json({"rows": [["x"]]}), encoding="utf-8")
        assert Results.from_file(tmp_path / "a.json") == results
        assert json.loads((tmp_path / "a.json").read_text())["computed"] == {"rows": [["x"]]}

    def test_a_summary_stands_for_runs_that_are_not_there(self):
        """Oracle: by hand."""
        assert Results("table 1", [], [SUMMARY]).summary("sst", "both", "test") == Summary(42.0, 1.0, 2)

    @pytest.mark.parametrize(
        ("runs", "summaries", "message"),
        [
            ([{**RUN, "metric": "f1"}], [], "a task and its metric"),
            ([{"task": "snli"}], [], "no dev"),
            ([RUN, {**RUN, "dev": 1.0}], [], "twice there is .*snli"),
            ([{**RUN, "dev": "70"}], [], "'dev' must be a number from 0 to 100, but is '70'"),
            ([{**RUN, "dev": None}], [], "'dev' must be a number"),
            ([{**RUN, "test": float("nan")}], [], "'test' must be a number"),
            ([{**RUN, "test": 6900}], [], "'test' must be a number from 0 to 100"),
            ([{**RUN, "seed": "1"}], [], "'seed' must be a number of at least 1"),
            ([], [{**SUMMARY, "mean": None}], "'mean' must be a number"),
            ([], [{**SUMMARY, "n": 0}], "'n' must be a number of at least 1"),
            ([RUN], [{**SUMMARY, "task": "snli"}], "twice there is .*snli"),
        ],
    )
    def test_scores_that_are_not_clear_are_refused(self, runs, summaries, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            Results("table 1", runs, summaries)

    @pytest.mark.parametrize(
        "content", ["[]", "{", "[" * 100_000, '{"format": 2}', '{"format": 1, "runs": [], "tabel": ""}']
    )
    def test_a_file_of_another_form_is_named(self, tmp_path, content):
        """Oracle: the message names the file."""
        (tmp_path / "a.json").write_text(content)
        with pytest.raises(ValueError, match=r"a\.json"):
            Results.from_file(tmp_path / "a.json")
