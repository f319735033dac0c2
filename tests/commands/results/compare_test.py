"""Tests of `allennlp elmo-compare`."""

import argparse
import json

import pytest

from elmo_tasks.analysis import compare
from elmo_tasks.commands import Compare


class TestCompare:
    def test_it_prints_the_table_of_the_runs_that_it_is_given(self, tmp_path, capsys):
        """Oracle: the table itself."""
        for name, score in (("a", 0.5), ("b", 0.6)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "metrics.json").write_text(json.dumps({"best_validation_f1": score}))
        runs = [tmp_path / "a", tmp_path / "b"]
        parser = Compare().add_subparser(argparse.ArgumentParser().add_subparsers())
        arguments = parser.parse_args([*map(str, runs), "--metric", "f1"])
        arguments.func(arguments)
        assert capsys.readouterr().out == compare(runs, "f1") + "\n"

    @pytest.mark.parametrize("run", ["none", "folder", "file", "no JSON"])
    def test_a_run_that_is_not_finished_is_a_line(self, error_of, tmp_path, run):
        """Oracle: the message."""
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
        (tmp_path / "no JSON").mkdir()
        (tmp_path / "no JSON" / "metrics.json").write_text("{")
        message = error_of("elmo-compare", tmp_path / run)
        assert ("line 1 column 2" if run == "no JSON" else f"{run} must be the serialization directory of a") in message
