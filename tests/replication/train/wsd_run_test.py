"""Tests of the measurement of Table 5."""

import json
from dataclasses import replace

import pytest
from filelock import FileLock

from elmo_tasks.replication import WordSenseRun
from tests.bilm.many_langs.models import write_model

# As `allennlp elmo-wsd --data DATA --bilm BILM --output-file FILE` does.
FAKE = """
[ "$1 $2 $4 $6" = "elmo-wsd --data --bilm --output-file" ] || exit 3
echo '{"called": "'"$*"'"}' > "$7"
"""
FILES = {
    "data": "wsd/test/a.data.xml",
    "options": "bilm/options.json",
    "weights": "bilm/weights.hdf5",
    "wordnet": "wordnet/dict/index.sense",
}


@pytest.fixture
def run(tmp_path):
    """A measurement of data, biLM and WordNet that are files of a word each."""
    for name, file in FILES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(name)
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
        """Oracle: how the command was called; what would fail is not called again."""
        assert not run.is_finished()
        run.measure(command())
        assert run.is_finished()
        assert f"--wordnet {run.wordnet}" in json.loads(run.scores.read_text())["called"]
        run.measure(("/bin/false",))

    @pytest.mark.parametrize("changed", FILES)
    def test_another_measurement_in_its_place_is_refused(self, run, command, tmp_path, changed):
        """Oracle: the message names what is another; a file that is not read does not count."""
        run.measure(command())
        (tmp_path / "bilm" / "README.md").write_text("new")
        assert run.is_finished()
        (tmp_path / FILES[changed]).write_text("another")
        with pytest.raises(ValueError, match=f"holds another: {changed} is .*--results"):
            run.is_finished()

    def test_a_model_of_another_format_has_files_too(self, run, tmp_path):
        """Oracle: the identity before and after another embedder."""
        folder = write_model(tmp_path / "model")
        of_model = replace(run, bilm=str(folder))
        before = of_model.identity()
        with open(folder / "token_embedder.pkl", "ab") as file:
            file.write(b"x")
        assert {key for key, value in of_model.identity().items() if value != before[key]} == {"weights"}

    @pytest.mark.parametrize("content", ["", "[]", "{}"])
    def test_a_file_of_another_program_is_refused(self, run, content):
        """Oracle: the message."""
        run.scores.parent.mkdir(parents=True)
        run.scores.write_text(content)
        with pytest.raises(ValueError, match=r"scores\.json must be of this command.*move it away"):
            run.is_finished()

    def test_scores_that_were_changed_are_refused(self, run, command):
        """Oracle: the message."""
        run.measure(command())
        run.scores.write_text(run.scores.read_text().replace("elmo-wsd", "elmo-WSD"))
        with pytest.raises(ValueError, match=r"scores\.json must be of this command.*damaged or was changed"):
            run.is_finished()

    @pytest.mark.parametrize(("end", "message"), [("exit 2", "status 2"), ("kill -9 $$", "killed by signal 9")])
    def test_a_failure_leaves_no_scores(self, run, command, end, message):
        """Oracle: the error, and the folder; half a file was written."""
        with pytest.raises(ChildProcessError, match=message):
            run.measure(command(f'echo half > "$7"; {end}'))
        assert not run.is_finished()
        assert {path.name for path in run.scores.parent.iterdir()} <= {"lock"}

    def test_data_that_is_replaced_meanwhile_is_not_what_was_measured(self, run, command, tmp_path):
        """Oracle: the message of the next look; the command replaces the data itself."""
        run.measure(command(FAKE + f"echo another > {tmp_path / FILES['data']}\n"))
        with pytest.raises(ValueError, match="holds another: data is"):
            run.is_finished()

    def test_two_processes_do_not_measure_it_at_once(self, run, command):
        """Oracle: the error while another process holds the lock, here this one; and none afterwards."""
        run.scores.parent.mkdir(parents=True)
        with FileLock(run.scores.parent / "lock"):
            with pytest.raises(BlockingIOError, match="by another process: wait"):
                run.measure(command())
        run.measure(command())
        assert run.is_finished()

    def test_what_is_not_there_is_named_before_anything_is_called(self, run, tmp_path):
        """Oracle: the messages."""
        for absent, error, message in (
            (WordSenseRun(run.results, tmp_path / "nowhere", run.bilm), FileNotFoundError, "nowhere' with train/"),
            (WordSenseRun(run.results, run.data, str(tmp_path)), FileNotFoundError, "must have options.json"),
            (WordSenseRun(run.results, run.data, "https://example.org"), ValueError, "is the URL https://example.org"),
            (WordSenseRun(run.results, run.data, run.bilm, tmp_path), FileNotFoundError, "must have index.sense"),
        ):
            with pytest.raises(error, match=message):
                absent.measure(("/bin/false",))
