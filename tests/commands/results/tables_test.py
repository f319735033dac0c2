"""Tests of `allennlp elmo-tables`."""

import argparse
import functools
import importlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from elmo_tasks.commands import Tables
from elmo_tasks.replication import Results, make, run_here, tables_page
from elmo_tasks.replication.train import training
from tests.integration.kill_callback import START_METHOD
from tests.paths import SHIPPED_BILM, TINY_BILM

# As `allennlp train CONFIG -s FOLDER` does; the first seed of the baseline is what a test lets fail.
FAKE = """
mkdir -p "$4"
case "$2" in {fails}) echo out of memory; exit 1;; esac
echo '{{"best_validation_f1-measure-overall": 0.5, "test_f1-measure-overall": 0.25}}' > "$4/metrics.json"
"""


@pytest.fixture
def tables(environment: pytest.MonkeyPatch, tmp_path, evaluated_once) -> Callable[..., None]:
    """Runs the command with `allennlp train` replaced: `tables(*arguments, fails="nothing")`."""
    parser = argparse.ArgumentParser()
    Tables().add_subparser(parser.add_subparsers())

    def run(*arguments: str, fails: str = "nothing") -> None:
        (tmp_path / "fake").write_text(FAKE.format(fails=fails))
        command = ("/bin/sh", str(tmp_path / "fake"))
        environment.setattr(make, "run_here", functools.partial(run_here, command=command))
        given = parser.parse_args(["elmo-tables", "--results", str(tmp_path / "results"), *arguments])
        given.func(given)

    return run


NER = ("--table", "1", "--tasks", "ner")


class TestTables:
    def test_a_dry_run_shows_the_runs_and_makes_nothing(self, tables, tmp_path, capsys):
        """Oracle: the plan by hand."""
        tables(*NER, "--seeds", "1", "--dry-run")
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert lines[:2] == [["to", "run", "ner/baseline/1"], ["to", "run", "ner/input/1"]]
        assert lines[2][:3] == ["2", "of", "2"]
        assert not (tmp_path / "results").exists()

    def test_a_failed_run_is_named_and_the_next_call_trains_it_alone(self, tables, tmp_path, capsys):
        """Oracle: the numbers of seeds in the table, the messages, and when the folders were made."""
        with pytest.raises(SystemExit, match=r"1 runs are not finished.*: ner/baseline/1"):
            tables(*NER, "--seeds", "2", fails="*baseline/1/*")
        captured = capsys.readouterr()
        assert "| 25.00 (1) | 25.00 ± 0.00 (2) |" in " ".join(captured.out.split())
        assert "ner/baseline/1: ended with status 1: out of memory" in captured.err
        record = tmp_path / "results" / "ner" / "input" / "1" / "record.json"
        before = record.stat().st_mtime_ns
        tables(*NER, "--seeds", "2")
        assert "| 25.00 ± 0.00 (2) | 25.00 ± 0.00 (2) |" in " ".join(capsys.readouterr().out.split())
        assert record.stat().st_mtime_ns == before

    def test_the_bilm_may_be_named(self, tables, capsys):
        """Oracle: the run that was trained with the folder of the same biLM is the run with its name."""
        tables(*NER, "--seeds", "1", "--bilm", str(SHIPPED_BILM))
        capsys.readouterr()
        tables(*NER, "--seeds", "1", "--bilm", "small-open", "--dry-run")
        assert capsys.readouterr().out.splitlines()[:2] == ["finished     ner/baseline/1", "finished     ner/input/1"]

    def test_another_bilm_has_a_column(self, tables, environment, tmp_path, capsys):
        """Oracle: by hand: its name in the columns and the caption; a home folder that the shell has left as it is."""
        environment.setenv("HOME", str(tmp_path))
        shutil.copytree(TINY_BILM, tmp_path / "mine")
        tables(*NER, "--seeds", "1", "--contextual", "tuned=~/mine")
        table = " ".join(capsys.readouterr().out.split())
        assert "| baseline | ELMo | tuned | increase (relative) |" in table
        assert "| 25.00 (1) | 25.00 (1) | 25.00 (1) |" in table
        assert re.search(r"; biLM: \w+ \([^)]*\); biLM tuned: mine \(", table.replace("\\", ""))

    def test_the_small_data_is_logged_unless_it_was_asked_for(self, tables, fixtures_root, caplog):
        """Oracle: the line in the log."""
        tables(*NER, "--seeds", "1", "--dry-run")
        assert "ELMO_TASKS_DATA is not set" in caplog.text
        caplog.clear()
        tables(*NER, "--seeds", "1", "--dry-run", "--data", str(fixtures_root))
        assert caplog.text == ""

    def test_json_is_a_result_file(self, tables, tmp_path, capsys):
        """Oracle: what reads it, and the cells of the Markdown table."""
        tables(*NER, "--seeds", "1", "--format", "json", "--name", "ner=names")
        (tmp_path / "a.json").write_text(text := capsys.readouterr().out)
        results = Results.from_file(tmp_path / "a.json")
        assert [(run["variant"], run["dev"], run["test"]) for run in results.runs] == [
            ("baseline", 50.0, 25.0),
            ("input", 50.0, 25.0),
        ]
        assert results.about["ner"]["data"] == "names"
        assert json.loads(text)["computed"]["rows"][0][2] == "25.00 (1)"

    def test_other_settings_do_not_mix_with_runs_that_are_there(self, tables):
        """Oracle: the message; the same call without them works."""
        tables(*NER, "--seeds", "1")
        with pytest.raises(SystemExit, match="num_epochs is 75, not 3"):
            tables(*NER, "--seeds", "1", "--overrides", '{"trainer.num_epochs": 3}')
        tables(*NER, "--seeds", "1")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((*NER, "--data", "nowhere"), r"\(--data\) must be a folder, but .*nowhere"),
            ((*NER, "--bilm", "nowhere"), r"a biLM must be one of .*but 'nowhere' is neither"),
            (("--table", "5", "--wordnet", "nowhere"), "index.sense"),
            (("--table", "5", "--bilm", "https://example.org/bilm"), "--bilm is the URL https://example.org/bilm"),
            (("--table", "5", "--tasks", "ner"), "omit --tasks"),
            (("--table", "5", "--seeds", "0"), "omit --seeds"),
            ((*NER, "--wordnet", "nowhere"), "omit --wordnet"),
            (("--table", "3", "--tasks", "ner"), "not about 'ner'"),
            ((*NER, "--jobs", "0"), "--jobs is 0"),
            (("--figure", "2", "--format", "json"), "omit --format, which is for tables"),
            ((*NER, "--jobs", "0", "--dry-run"), "--jobs is 0"),
            ((*NER, "--runs", "runs"), "--runs is for the runs of a plan"),
            ((*NER, "--retry-failed"), "--retry-failed is for the runs of a plan"),
            ((*NER, "--overrides", 'nre={"a": 1}'), "'nre'"),
        ],
    )
    def test_an_error_is_one_line(self, tables, arguments, message):
        """Oracle: the message with which the command ends."""
        with pytest.raises(SystemExit, match=message) as ended:
            tables(*arguments)
        assert "\n" not in ended.value.code

    def test_a_dry_run_of_table_5_looks_at_its_data(self, tables, tmp_path, capsys):
        """Oracle: what is printed with the data that ships, and the message without any."""
        tables("--table", "5", "--dry-run")
        assert capsys.readouterr().out.split() == ["to", "run", "wsd"]
        with pytest.raises(SystemExit, match=r"Table 5 needs the folder '.*wsd' with train/ and test/"):
            tables("--table", "5", "--dry-run", "--data", str(tmp_path))

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--overrides", "snli={"),
            ("--overrides", "[1]"),
            ("--name", "ner"),
            ("--table", "4"),
            ("--contextual", "tuned="),
        ],
    )
    def test_arguments_that_cannot_be_parsed_are_refused(self, tables, arguments):
        """Oracle: argparse's status."""
        with pytest.raises(SystemExit) as ended:
            tables(*NER, *arguments)
        assert ended.value.code == 2


class Fork:
    """A command of `allennlp` in a fork of this process, which has imported AllenNLP; as `subprocess.Popen`."""

    def __init__(self, command: Callable[..., None], call: list[str], output: BinaryIO) -> None:
        # Optimizers import it, which takes seconds: here once for all tests, and not in each fork.
        importlib.import_module("torch._dynamo")
        self._process = multiprocessing.get_context("fork").Process(
            target=self._run, args=(command, call, output.fileno())
        )
        self._process.start()
        self.pid = self._process.pid

    @staticmethod
    def _run(command: Callable[..., None], call: list[str], output: int) -> None:
        for stream in (1, 2):
            os.dup2(output, stream)
        command(*call)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode


@pytest.mark.slow
class TestTraining:
    def test_a_table_and_a_figure_from_a_real_training(self, command, environment, small_ner, tmp_path, capsys):
        """
        Oracle: both variants are in the table, and the one with ELMo in the figure, for which nothing is trained again;
        the weights of the three layers come to 1. The baseline, a config like the other one, is not really trained.
        """
        (tmp_path / "fake").write_text(FAKE.format(fails="nothing"))

        def begin(call: list[str], *, stdout, **others):
            if "baseline" in call[-3]:
                return subprocess.Popen(["/bin/sh", tmp_path / "fake", *call], stdout=stdout, **others)
            if START_METHOD != "fork":
                return subprocess.Popen([*training.ALLENNLP, *call], stdout=stdout, **others)
            return Fork(command, call, stdout)

        environment.setattr(training, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": begin}))
        environment.setattr(make, "run_here", functools.partial(run_here, command=()))
        shutil.copytree(small_ner / "ner", tmp_path / "data" / "ner")
        for path in (tmp_path / "data" / "ner").iterdir():
            path.write_text("\n\n".join(path.read_text().split("\n\n")[:10]) + "\n")
        (tmp_path / "data" / "glove").symlink_to(small_ner / "glove")
        given = ("--tasks", "ner", "--seeds", "1", "--results", tmp_path / "results", "--data", tmp_path / "data")
        given += ("--overrides", '{"trainer.num_epochs": 1}')
        command("elmo-tables", "--table", "1", *given)
        assert re.search(r"\| NER \| F1, test \|.* \(1\) \|.* \(1\) \|", " ".join(capsys.readouterr().out.split()))
        log = tmp_path / "results" / "ner" / "input" / "1" / "log.txt"
        before = log.stat().st_mtime_ns
        command("elmo-tables", "--figure", "2", *given)
        assert log.stat().st_mtime_ns == before
        lines = (tmp_path / "results" / "figures" / "figure2.csv").read_text().splitlines()[1:]
        assert [line.rsplit(",", 2)[0] for line in lines] == [f"ner,input,1,{layer}" for layer in range(3)]
        assert sum(float(line.split(",")[4]) for line in lines) == pytest.approx(1)

    def test_the_senses_are_measured_once_and_are_a_result_file(self, command, tmp_path, fixtures_root, capsys):
        """Oracle: the command that it calls, called by itself, and the page that is made of the file."""
        given = ("--table", "5", "--results", tmp_path / "results", "--wordnet", fixtures_root / "wsd" / "wordnet")
        command("elmo-tables", *given)
        table = capsys.readouterr().out
        before = (tmp_path / "results" / "wsd" / "scores.json").stat().st_mtime_ns
        command("elmo-tables", *given, "--format", "json")
        (tmp_path / "table5.json").write_text(capsys.readouterr().out)
        assert (tmp_path / "results" / "wsd" / "scores.json").stat().st_mtime_ns == before
        grid = "\n".join(line for line in table.splitlines() if line.startswith("|"))
        assert grid and grid in tables_page([tmp_path / "table5.json"])
        command("elmo-wsd", "--wordnet", fixtures_root / "wsd" / "wordnet", "--output-file", tmp_path / "wsd.json")
        alone, found = (json.loads((tmp_path / name).read_text()) for name in ("wsd.json", "table5.json"))
        assert found.pop("identity").keys() == {"data", "options", "weights", "wordnet"}
        assert found.pop("made")[0].startswith("Table 5: commit ")
        assert found == alone
