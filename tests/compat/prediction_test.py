"""Tests of elmo_tasks.compat.prediction."""

import argparse

import pytest
from allennlp.commands.predict import Predict

from elmo_tasks.commands import predict as command


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    Predict().add_subparser(parser.add_subparsers())
    return parser


class TestPredictLineByLine:
    def test_the_option_is_one_of_allennlps_command(self, parser, capsys):
        """Oracle: the arguments with and without it, and the help."""
        assert parser.parse_args(["predict", "archive", "input", "--keep-going"]).keep_going is True
        assert parser.parse_args(["predict", "archive", "input"]).keep_going is False
        with pytest.raises(SystemExit):
            parser.parse_args(["predict", "--help"])
        shown = capsys.readouterr().out
        assert "--keep-going" in shown and '{"error": ..., "line": n}' in " ".join(shown.split())

    def test_our_command_runs(self, parser, monkeypatch):
        """Oracle: the arguments that it gets."""
        found = []
        monkeypatch.setattr(command, "predict", found.append)
        arguments = parser.parse_args(["predict", "archive", "input"])
        arguments.func(arguments)
        assert found == [arguments]
