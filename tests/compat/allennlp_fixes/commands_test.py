"""Tests of elmo_tasks.compat.allennlp_fixes.commands."""

import argparse
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from allennlp import commands
from allennlp.commands import evaluate
from allennlp.commands.predict import Predict
from allennlp.common import Params
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import SigTermReceived
from allennlp.data import Vocabulary

from elmo_tasks.commands import predict as command
from elmo_tasks.data import NerReader
from elmo_tasks.files.text_lines import numbered_lines


@pytest.fixture
def stderr_of(monkeypatch, capsys):
    """What `allennlp train` prints when a function that it calls raises an error."""

    def run(function):
        def parse_args(prog):
            function()

        with monkeypatch.context() as patch:
            patch.setattr(sys, "excepthook", sys.__excepthook__)
            patch.setattr(sys, "argv", ["allennlp", "train", "config.jsonnet"])
            patch.setattr(commands, "parse_args", parse_args)
            try:
                commands.main()
            except BaseException as error:
                # As Python does at the end of a process.
                with suppress(SystemExit):
                    sys.excepthook(type(error), error, error.__traceback__)
        return capsys.readouterr().err

    return run


class TestEndInOneLine:
    def test_what_says_what_is_wrong_is_one_line(self, stderr_of):
        """Oracle: by hand: AllenNLP's error of configs, one of a file, and one that AllenNLP raises itself."""

        def config():
            raise ConfigurationError("no\n  such \x1b[2J type")

        hint = " (ALLENNLP_DEBUG=1 shows where)\n"
        assert stderr_of(config) == rf"allennlp train: error: no such \u001b[2J type{hint}"
        found = stderr_of(lambda: Path("/nowhere/a.txt").read_text())
        assert found == f"allennlp train: error: [Errno 2] No such file or directory: '/nowhere/a.txt'{hint}"
        found = stderr_of(lambda: list(numbered_lines("/dev/null")))
        assert found.startswith("allennlp train: error: /dev/null") and found.count("\n") == 1

    def test_other_errors_keep_their_traceback(self, stderr_of):
        """Oracle: Python's own; an error of the user's code, and one of torch."""

        def of_the_user():
            raise ValueError("mine")

        for function, last in ((of_the_user, "ValueError: mine"), (lambda: torch.ones(2) @ torch.ones(3), "size")):
            found = stderr_of(function)
            assert found.startswith("Traceback") and last in found.splitlines()[-1]

    def test_an_interruption_says_how_to_resume(self, stderr_of):
        """Oracle: by hand."""

        def interrupt():
            raise KeyboardInterrupt

        assert stderr_of(interrupt) == "\nallennlp train: interrupted: the same command with --recover resumes\n"

        def end():
            raise SigTermReceived

        assert stderr_of(end) == "allennlp train: ended by SIGTERM: the same command with --recover resumes\n"

    @pytest.mark.parametrize("debug", ["", "1"])
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    @pytest.mark.parametrize("in_training", [False, True])
    def test_the_status_of_a_process_that_was_ended_is_that_of_the_signal(self, tmp_path, number, debug, in_training):
        """Oracle: a real signal: 143, or that the process was ended by it; a traceback if that is asked for."""
        script = (
            "import os, runpy, sys; from allennlp import commands; from allennlp.common import logging\n"
            "def parse_args(prog):\n"
            f"    if {in_training}: logging.prepare_global_logging({str(tmp_path)!r})\n"
            f"    os.kill(os.getpid(), {int(number)})\n"
            "commands.parse_args = parse_args\n"
            "sys.argv = ['allennlp', 'evaluate']; runpy.run_module('allennlp', run_name='__main__')"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "ALLENNLP_DEBUG": debug},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert ended.returncode == (128 + number if number == signal.SIGTERM else -number)
        assert ("Traceback" in ended.stderr) == bool(debug)
        if not debug:
            assert ended.stderr.splitlines()[-1].startswith("allennlp evaluate: ")

    def test_in_a_training_the_traceback_is_in_its_log(self, stderr_of, logging_as_before, tmp_path):
        """Oracle: stderr and out.log, of an error in data, of a mistake in the program, and after Ctrl-C."""

        def raising(error):
            def run():
                common_logging.prepare_global_logging(str(tmp_path))
                raise error

            return run

        found = stderr_of(raising(ConfigurationError("no labels")))
        assert found == "allennlp train: error: no labels (ALLENNLP_DEBUG=1 shows where)\n"
        log = tmp_path / "out.log"
        assert log.read_text().count("Traceback") == 1 and log.read_text().endswith("ConfigurationError: no labels\n")
        assert "Traceback" in stderr_of(raising(RuntimeError("a mistake")))
        assert stderr_of(raising(KeyboardInterrupt())).endswith("the same command with --recover resumes\n")

    def test_the_traceback_can_be_had(self, stderr_of, monkeypatch):
        """Oracle: Python's own."""
        monkeypatch.setenv("ALLENNLP_DEBUG", "1")

        def config():
            raise ConfigurationError("no such type")

        assert stderr_of(config).startswith("Traceback")

    def test_the_hook_is_put_back(self, monkeypatch):
        """Oracle: the hook before, after a command that ended well."""
        monkeypatch.setattr(commands, "parse_args", lambda prog: (None, type("Arguments", (), {"func": print})()))
        before = sys.excepthook
        commands.main()
        assert sys.excepthook is before


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


class TestTakeBatchSizeOfEvaluate:
    @pytest.mark.parametrize(
        ("settings", "sizes"),
        [
            ({"batch_sampler": {"type": "bucket", "batch_size": 2}}, [3, 2]),
            ({"batch_sampler": {"type": "max_tokens_sampler", "max_tokens": 4}}, [3, 2]),
            ({"batch_size": 4}, [3, 2]),
        ],
    )
    def test_it_is_that_of_the_batches(self, tmp_path, settings, sizes):
        """Oracle: by hand: five sentences in batches of three."""
        (tmp_path / "text.txt").write_text("\n".join(f"{word} O\n" for word in "abcde"))
        reader = NerReader()
        # As the command adds it.
        params = Params({**settings, "batch_size": 3})
        loader = evaluate.DataLoader.from_params(params=params, reader=reader, data_path=tmp_path / "text.txt")
        loader.index_with(Vocabulary.from_instances(reader.read(tmp_path / "text.txt")))
        assert sorted((len(batch["metadata"]) for batch in loader), reverse=True) == sizes

    def test_other_settings_stay(self, tmp_path):
        """Oracle: the sampler's own size."""
        (tmp_path / "text.txt").write_text("\n".join(f"{word} O\n" for word in "abcde"))
        params = Params({"batch_sampler": {"type": "bucket", "batch_size": 4}})
        loader = evaluate.DataLoader.from_params(params=params, reader=NerReader(), data_path=tmp_path / "text.txt")
        assert loader.batch_sampler.batch_size == 4


class TestCheckOutputFilesOfEvaluate:
    @pytest.mark.parametrize(
        ("options", "option"),
        [
            (["--output-file", "one"], "--output-file must name a file for each of the 2"),
            (["--predictions-output-file", "a,b,c"], "--predictions-output-file must .* but names 3: or let .* PREDS"),
            (["--output-file", "one", "--auto-names", "PREDS"], "--output-file must .* or let --auto-names ALL name"),
            (["--output-file", "a,b"], None),
            (["--output-file", "one", "--auto-names", "METRICS"], None),
            ([], None),
        ],
    )
    def test_there_must_be_one_for_each(self, monkeypatch, options, option):
        """Oracle: the message, before the archive is loaded."""
        parser = argparse.ArgumentParser()
        evaluate.Evaluate().add_subparser(parser.add_subparsers())
        arguments = parser.parse_args(["evaluate", "archive", "A.txt,B.txt", *options])
        monkeypatch.setattr(evaluate, "evaluate_from_archive", lambda **arguments: "evaluated")
        if option is None:
            assert arguments.func(arguments) == "evaluated"
            return
        with pytest.raises(ConfigurationError, match=option):
            arguments.func(arguments)

    def test_objects_are_inputs_too(self, monkeypatch):
        """Oracle: the number of objects, whatever commas are in them."""
        parser = argparse.ArgumentParser()
        evaluate.Evaluate().add_subparser(parser.add_subparsers())
        command = ["evaluate", "archive", '{"a": 1, "b": 2}', "--output-file"]
        monkeypatch.setattr(evaluate, "evaluate_from_archive", lambda **arguments: "evaluated")
        arguments = parser.parse_args([*command, "one"])
        assert arguments.func(arguments) == "evaluated"
        for options, message in (
            (["one,two"], "must name a file for each of the 1 .* but names 2$"),
            (
                ["one", "--auto-names", "METRICS"],
                "--auto-names needs inputs that are files: name those of --output-file",
            ),
        ):
            arguments = parser.parse_args([*command, *options])
            with pytest.raises(ConfigurationError, match=message):
                arguments.func(arguments)
