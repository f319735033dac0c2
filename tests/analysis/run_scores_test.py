"""Tests of the scores of one run; what is wrong with a run is tested with `compare`."""

import json

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.analysis import run_scores


class TestRunScores:
    def test_dev_and_test(self, tmp_path):
        """Oracle: the file."""
        (tmp_path / "metrics.json").write_text(json.dumps({"best_validation_f1": 0.5, "test_f1": 0.25}))
        assert run_scores(tmp_path, "f1") == (0.5, 0.25)

    def test_without_a_test_set(self, tmp_path):
        """Oracle: the file."""
        (tmp_path / "metrics.json").write_text(json.dumps({"best_validation_f1": 0.5}))
        assert run_scores(tmp_path, "f1") == (0.5, None)

    @pytest.mark.parametrize("content", ["{", "[1]", "3", "", "\x00", "[" * 100_000])
    def test_what_is_no_object_is_an_error(self, tmp_path, content):
        """Oracle: the message, which names the file."""
        (tmp_path / "metrics.json").write_text(content)
        with pytest.raises(ConfigurationError, match=r"metrics\.json must be a JSON object"):
            run_scores(tmp_path, "f1")

    @pytest.mark.parametrize("value", ['"0.5"', "true", "[0.5]", "NaN", "Infinity"])
    def test_what_is_no_number_is_an_error(self, tmp_path, value):
        """Oracle: the message, which names file and value."""
        (tmp_path / "metrics.json").write_text(f'{{"best_validation_f1": {value}}}')
        with pytest.raises(ConfigurationError, match=r"metrics\.json must have a number as 'f1', but has "):
            run_scores(tmp_path, "f1")
