"""Tests of the table of several runs."""

import json
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.analysis import compare


def finished_run(folder: Path, **metrics: float) -> Path:
    folder.mkdir()
    (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder


class TestCompare:
    def test_scores_are_percent_and_differences_are_to_the_first_run(self, tmp_path):
        """Oracle: the table written by hand."""
        runs = [
            finished_run(tmp_path / "a", best_validation_f1=0.5, test_f1=0.4),
            finished_run(tmp_path / "b", best_validation_f1=0.625, test_f1=0.35),
        ]
        rows = [line.split() for line in compare(runs, "f1").splitlines()]
        assert rows[1:] == [[str(runs[0]), "50.00", "40.00"], [str(runs[1]), "62.50", "35.00", "-5.00"]]

    def test_a_difference_that_is_rounded_to_zero_has_no_minus(self, tmp_path):
        """Oracle: the table written by hand."""
        runs = [
            finished_run(tmp_path / "a", best_validation_f1=0.5, test_f1=0.25),
            finished_run(tmp_path / "b", best_validation_f1=0.5, test_f1=0.249999),
        ]
        assert compare(runs, "f1").splitlines()[2].split() == [str(runs[1]), "50.00", "25.00", "+0.00"]

    def test_a_run_without_test_scores_has_none(self, tmp_path):
        """Oracle: the table written by hand."""
        runs = [
            finished_run(tmp_path / "a", best_validation_f1=0.5, test_f1=0.4),
            finished_run(tmp_path / "b", best_validation_f1=0.6),
        ]
        assert compare(runs, "f1").splitlines()[2].split() == [str(runs[1]), "60.00"]

    def test_an_unfinished_run_is_named(self, tmp_path):
        """Oracle: the message names the folder and the remedy."""
        with pytest.raises(ConfigurationError, match=r"(?s)broken.*--recover"):
            compare([tmp_path / "broken"], "f1")

    def test_what_is_no_share_is_refused(self, tmp_path):
        """Oracle: the message; a perplexity is not a percentage."""
        run = finished_run(tmp_path / "a", best_validation_perplexity=45.2)
        with pytest.raises(ConfigurationError, match=r"perplexity must be from 0 to 1, .*/a is 45\.2"):
            compare([run], "perplexity")

    def test_an_unknown_metric_lists_the_known_ones(self, tmp_path):
        """Oracle: the message names the metric and those that are there."""
        run = finished_run(tmp_path / "a", best_validation_f1=0.5)
        with pytest.raises(ConfigurationError, match="'accuracy', but has f1"):
            compare([run], "accuracy")
