"""Tests of the ends of commands: errors and interruptions."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import SigTermReceived

from elmo_tasks.commands.endings import endings_in_one_line

# For each command its arguments, the function in which it is interrupted, and how it says to resume.
COMMANDS = {
    "elmo-compare": (["run"], "commands.results.compare.compare", "the same command starts over"),
    "elmo-coref-conll": (["in", "out"], "commands.coref_conll.numbered_lines", "the same command starts over"),
    "elmo-data": (["sst", "--to", "folder"], "commands.data.fetch", "the same command resumes the download"),
    "elmo-demo": ([], "commands.demo.config_variables", "the same command starts it again"),
    "elmo-distill": (
        ["teacher", "text", "--student", "config", "-s", "folder"],
        "commands.distill.Params.from_file",
        "the same command resumes",
    ),
    "elmo-embed": (["text", "out.h5"], "embed_job.embed", "the same command with --resume resumes"),
    "elmo-export": (["archive", "folder"], "commands.export.load_archive", "run the same command again"),
    "elmo-neighbors": (["index", "text", "folder"], "commands.neighbors.index_text", "the same command resumes"),
    "elmo-perplexity": (["bilm", "text"], "commands.perplexity.LanguageModel", "the same command starts over"),
    "elmo-report": (["results"], "commands.results.report.read_sources", "the same command starts over"),
    "elmo-squad-predictions": (["in", "out"], "commands.squad_predictions.numbered_lines", "starts over"),
    "elmo-tables": (
        ["--table", "1"],
        "commands.results.tables.experiment_of",
        "the same command resumes each training",
    ),
    "elmo-wsd": ([], "commands.wsd.WsdMeasurement", "the same command starts over"),
}


class TestEndingsInOneLine:
    @pytest.mark.parametrize("error", [ValueError, OSError, ImportError, ConfigurationError])
    def test_wrong_input_ends_the_command_with_a_line(self, error):
        """Oracle: by hand: `sys.exit` prints its text and gives the status 1."""
        with pytest.raises(SystemExit) as ended, endings_in_one_line("elmo-x"):
            raise error("no\n  file")
        assert ended.value.code == "allennlp elmo-x: error: no file"

    def test_other_errors_keep_their_traceback_unless_they_are_named(self):
        """Oracle: by hand."""
        with pytest.raises(RuntimeError, match="broken"), endings_in_one_line("elmo-x"):
            raise RuntimeError("broken")
        with pytest.raises(SystemExit, match="elmo-x: error: killed"), endings_in_one_line("elmo-x", RuntimeError):
            raise RuntimeError("killed")

    def test_control_characters_of_data_are_escaped(self, capsys):
        """Oracle: by hand: a message that would clear the terminal (M03, N06), and one after Ctrl-C."""
        with pytest.raises(SystemExit) as ended, endings_in_one_line("elmo-x"):
            raise ValueError("the key 'é\x1b[2J\x9b\u202e' is wrong")
        assert ended.value.code == r"allennlp elmo-x: error: the key 'é\u001b[2J\u009b\u202e' is wrong"
        with pytest.raises(SystemExit), endings_in_one_line("elmo-x"):
            raise KeyboardInterrupt("after a\x1b[2J")
        assert capsys.readouterr().err == "\nallennlp elmo-x: after a\\u001b[2J\n"

    def test_what_cannot_be_printed_is_an_error(self, monkeypatch):
        """Oracle: the message, with stdout on a full device; nothing is left that Python would print when it ends."""
        with open("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stdout", full)
            with pytest.raises(SystemExit) as ended, endings_in_one_line("elmo-x"):
                print("a result")
            assert ended.value.code == "allennlp elmo-x: error: [Errno 28] No space left on device: 'stdout'"
            full.flush()

    def test_what_nobody_reads_is_no_error(self, monkeypatch):
        """Oracle: the status that a shell reports after SIGPIPE; another pipe that is broken is an error."""
        read, write = os.pipe()
        os.close(read)
        with open(write, "w") as unread:
            monkeypatch.setattr(sys, "stdout", unread)
            with pytest.raises(SystemExit) as ended, endings_in_one_line("elmo-x"):
                print("a result")
            assert ended.value.code == 141
            unread.flush()
            with pytest.raises(SystemExit, match="elmo-x: error: of a worker"), endings_in_one_line("elmo-x"):
                raise BrokenPipeError("of a worker")

    @pytest.mark.parametrize("stdout", [None, io.StringIO()])
    def test_stdout_need_not_be_a_file(self, stdout, monkeypatch):
        """Oracle: the message of an error; no error is no end. As in a service without stdout."""
        monkeypatch.setattr(sys, "stdout", stdout)
        with endings_in_one_line("elmo-x"):
            print("a result")
        with pytest.raises(SystemExit, match="elmo-x: error: of a worker"), endings_in_one_line("elmo-x"):
            raise BrokenPipeError("of a worker")

    def test_an_interruption_is_a_line_and_the_status_of_ctrl_c(self, capsys):
        """Oracle: by hand: 128 and the number of the signal."""
        with pytest.raises(SystemExit) as ended, endings_in_one_line("elmo-x", resume="call it again"):
            raise KeyboardInterrupt
        assert ended.value.code == 128 + signal.SIGINT
        assert capsys.readouterr().err == "\nallennlp elmo-x: interrupted: call it again\n"
        with pytest.raises(SystemExit), endings_in_one_line("elmo-x", resume="call it again"):
            raise KeyboardInterrupt("interrupted after part 7")
        assert capsys.readouterr().err == "\nallennlp elmo-x: interrupted after part 7\n"

    def test_sigterm_is_a_line_and_its_status(self, capsys):
        """Oracle: by hand, as after Ctrl-C."""
        with pytest.raises(SystemExit) as ended, endings_in_one_line("elmo-x", resume="call it again"):
            raise SigTermReceived
        assert ended.value.code == 128 + signal.SIGTERM
        assert capsys.readouterr().err == "allennlp elmo-x: ended by SIGTERM: call it again\n"


class TestCommands:
    def test_all_commands_are_here(self, environment):
        """Oracle: AllenNLP's registry."""
        assert {name for name in Subcommand.list_available() if name.startswith("elmo-")} == set(COMMANDS)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_each_says_how_to_resume(self, command, environment, tmp_path, capsys, name):
        """Oracle: the status and the only line on stderr; an interrupted command leaves no file."""
        arguments, function, resume = COMMANDS[name]

        def interrupted(*args: Any, **kwargs: Any) -> None:
            raise KeyboardInterrupt

        interrupted.of = interrupted
        environment.setattr(f"elmo_tasks.{function}", interrupted)
        environment.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            command(name, *arguments)
        assert ended.value.code == 130
        (line,) = capsys.readouterr().err.split("\n")[-2:-1]
        assert line.startswith(f"allennlp {name}: interrupted: ") and resume in line
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
class TestSignals:
    @pytest.mark.parametrize(
        ("number", "ended"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM")]
    )
    def test_a_training_is_ended_and_said_to_be_resumed(self, small_ner, tmp_path, number, ended):
        """Oracle: a real signal during a real training: the status, the last line, and the lock, which is free."""
        call = [sys.executable, "-m", "allennlp", "elmo-tables", "--table", "1", "--tasks", "ner", "--seeds", "1"]
        call += ["--data", str(small_ner), "--results", str(tmp_path / "results")]
        with open(tmp_path / "stderr", "wb") as stderr:
            process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=stderr, process_group=0)
        folder = tmp_path / "results" / "ner" / "baseline" / "1"
        try:
            wait_for(lambda: process.poll() is not None or (folder / "log.txt").exists())
            os.kill(process.pid, number)
            assert process.wait(60) == 128 + number
        finally:
            process.kill()
        error = (tmp_path / "stderr").read_text()
        assert "Traceback" not in error
        assert error.splitlines()[-1].startswith(f"allennlp elmo-tables: {ended}: the same command resumes")
        assert json.loads((folder / "record.json").read_text())["finished"] is None
        from elmo_tasks.replication.train.record import is_locked

        assert not is_locked(folder)


def wait_for(condition: Callable[[], Any]) -> None:
    """Up to ten minutes: the command has to be imported first."""
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
