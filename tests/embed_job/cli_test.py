"""Tests of the command line of the job."""

import argparse
from pathlib import Path

import pytest

from elmo_tasks.embed_job import EmbedOptions, EmbedReport, cli


@pytest.fixture
def called(monkeypatch):
    """The calls of `embed_file`, which does nothing."""
    calls = []

    def embed_file(text, output, options, **others):
        calls.append((text, output, options, others))
        return EmbedReport(3, 1000, 2.0, 12345)

    monkeypatch.setattr(cli, "embed_file", embed_file)
    return calls


def run(*line: str) -> None:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    cli.embed(parser.parse_args(line))


class TestEmbed:
    def test_without_options_the_job_has_its_defaults(self, called, capsys):
        """Oracle: those of `EmbedOptions`; the line that is printed by hand."""
        run("a.txt", "b.h5")
        others = dict(format=None, force=False, resume=False, workers=None, ray=None, show_progress=None)
        assert called == [(Path("a.txt"), Path("b.h5"), EmbedOptions(), others)]
        assert capsys.readouterr().out == (
            "wrote b.h5: 3 lines, 12,345 bytes; this run: 1,000 tokens in 2.0 s, 500 tokens/s\n"
        )

    def test_a_job_that_was_finished_before_says_so(self, monkeypatch, capsys):
        """Oracle: by hand."""
        report = EmbedReport(3, 0, 0.0, 12345, was_finished=True)
        monkeypatch.setattr(cli, "embed_file", lambda *arguments, **others: report)
        run("a.txt", "b.h5", "--resume")
        assert capsys.readouterr().out == "b.h5 was finished before, and is whole: 3 lines, 12,345 bytes\n"

    def test_each_option_reaches_the_job(self, called):
        """Oracle: by hand."""
        line = "a.txt b --format npz --bilm x --layers 2 --gamma 2 --pool max --tokenize --dtype float16 --device cpu"
        line += (
            " --precision bf16 --batch-tokens 7 --part-lines 8 --workers 9 --ray auto --resume --no-progress --no-nfc"
        )
        run(*line.split(), "--weights", "0", "-1", "2")
        expected = EmbedOptions("x", 2, (0.0, -1.0, 2.0), 2.0, "max", 7, True, "float16", "cpu", "bf16", 8, False)
        others = dict(format="npz", force=False, resume=True, workers=9, ray="auto", show_progress=False)
        assert called == [(Path("a.txt"), Path("b"), expected, others)]

    def test_weights_may_be_small_and_negative(self, called):
        """Oracle: by hand, as Python prints them; an option that follows is one."""
        run("a.txt", "b.h5", "--weights", "-4e-05", "-1.5E+3", "-.5", "--force")
        assert called[0][2].weights == (-4e-05, -1500.0, -0.5) and called[0][3]["force"]

    def test_force_and_resume_exclude_each_other(self, called, capsys):
        """Oracle: argparse's exit status."""
        with pytest.raises(SystemExit, match="2"):
            run("a.txt", "b.h5", "--force", "--resume")
        assert "not allowed with" in capsys.readouterr().err and not called
