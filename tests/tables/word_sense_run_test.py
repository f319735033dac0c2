"""Tests of the measurement that Table 5 is made of."""

import json

import pytest

from elmo_tasks.tables import WordSenseRun

# As `allennlp elmo-wsd --data DATA --bilm BILM --output-file FILE` does.
FAKE = """
[ "$1 $2 $4 $6" = "elmo-wsd --data --bilm --output-file" ] || exit 3
echo '{"called": "'"$*"'"}' > "$7"
"""


@pytest.fixture
def run(tmp_path):
    """A measurement of data, biLM and WordNet that are files of a word each."""
    for name in ("wsd", "bilm", "wordnet"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return WordSenseRun(tmp_path / "results", tmp_path / "wsd", str(tmp_path / "bilm"), tmp_path / "wordnet")


@pytest.fixture
def command(tmp_path):
    """An `allennlp` that is a script: `command(script)`."""

    def script(text=FAKE):
        (tmp_path / "allennlp").write_text(text)
        return ("/bin/sh", str(tmp_path / "allennlp"))

    return script


class TestWordSenseRun:
    def test_it_is_measured_once(self, run, command):
        """Oracle: how the command was called, and that it is finished afterwards."""
        assert not run.is_finished()
        run.measure(command())
        assert run.is_finished()
        assert f"--wordnet {run.wordnet}" in json.loads(run.scores.read_text())["called"]

    @pytest.mark.parametrize("changed", ["wsd", "bilm", "wordnet"])
    def test_another_measurement_in_its_place_is_refused(self, run, command, tmp_path, changed):
        """Oracle: the message names what is another."""
        run.measure(command())
        (tmp_path / changed / "file").write_text("another")
        with pytest.raises(ValueError, match=f"{'data' if changed == 'wsd' else changed} is .*--results"):
            run.is_finished()

    def test_a_failure_leaves_nothing(self, run, command):
        """Oracle: the error, and the folder; half a file was written."""
        with pytest.raises(ChildProcessError, match="status 2"):
            run.measure(command('echo half > "$7"; exit 2'))
        assert not run.is_finished()
        assert list(run.scores.parent.iterdir()) == []

    def test_data_that_is_not_there_is_named(self, run, tmp_path):
        """Oracle: the message; nothing is called."""
        absent = WordSenseRun(run.results, tmp_path / "nowhere", run.bilm)
        with pytest.raises(FileNotFoundError, match="nowhere must be there"):
            absent.measure(("/bin/false",))
