"""Tests of what a plan takes for finished."""

import json
import re
import resource
import shutil

import pytest

from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication import Evidence, Outcome
from elmo_tasks.replication.evidence import evidence as evidence_module
from elmo_tasks.replication.evidence.run_file import place_of
from elmo_tasks.replication.train.record import locked, read_record, write_record


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def make(make_run):
    """Makes a run of a plan: `make(seed=1, computation="c0", inputs={...}, value=1)`."""

    def planned(computation="c0", inputs=None, **arguments):
        run = make_run(task="ner", variant="baseline", **arguments)
        run.about["bilm"] = None
        run.identity.update(computation=computation, inputs={"data/ner": "d0"} if inputs is None else inputs)
        return run

    return planned


@pytest.fixture
def noted(make, finish, folder):
    """A finished run with its file, and without its folder: as on another machine."""

    def note(dev=0.5, **arguments):
        run = make(**arguments)
        outcome = Evidence(folder, []).note(Outcome(finish(run, dev)), None)
        assert outcome.error is None
        shutil.rmtree(run.folder)
        return run

    return note


def path_of(folder, run):
    return place_of(folder, run.task, run.variant, run.seed, run.size)


class TestEvidence:
    def test_a_file_is_taken_for_a_finished_run_on_any_machine(self, noted, make, folder):
        """Oracle: the state and the scores, though there is no folder of the run."""
        run, other = noted(), make(seed=2)
        evidence = Evidence(folder, [run, other])
        assert [evidence.state(run), evidence.state(other)] == ["finished", "to run"]
        ((found,), nothing) = evidence.finished([run]), evidence.finished([other])
        assert (found.dev, found.test, found.about, nothing) == (50.0, 25.0, run.about, [])
        assert evidence.refused == {}

    def test_without_data_its_digests_are_not_compared(self, noted, make, folder):
        """Oracle: the state with no digest, and with another one."""
        noted()
        without, other = make(inputs={}), make(inputs={"data/ner": "d1"})
        assert Evidence(folder, [without]).state(without) == "finished"
        evidence = Evidence(folder, [other])
        assert evidence.state(other) == "refused"
        assert 'inputs.data/ner is "d0", not "d1"' in evidence.reason(other)

    def test_what_other_code_has_computed_is_trained_again(self, noted, make, folder, finish):
        """Oracle: the state; what was left of it in its folder is removed before, and nothing of other runs."""
        noted()
        run = make(computation="c1")
        evidence = Evidence(folder, [run])
        assert evidence.state(run) == "outdated"
        write_before = make()
        write_before.folder.mkdir(parents=True)
        write_record(write_before)
        evidence.prepare(run)
        assert {path.name for path in run.folder.iterdir()} == {"lock"}
        evidence.note(Outcome(finish(run, 0.625)), None)
        assert evidence.state(run) == "finished" and evidence.finished([run])[0].dev == 62.5

    def test_a_folder_that_is_trained_in_is_left_alone_whatever_is_in_it(self, make, folder):
        """Oracle: the state, the message, and the record that is still there; the lock is that of a training."""
        earlier, run = make(), make(computation="c1")
        earlier.folder.mkdir(parents=True)
        write_record(earlier)
        with locked(run.folder):
            evidence = Evidence(folder, [run])
            assert evidence.state(run) == "in progress"
            with pytest.raises(BlockingIOError, match="is being trained by another process"):
                evidence.prepare(run)
        assert read_record(run.folder)["identity"] == earlier.identity
        assert evidence.state(run) == "outdated"

    def test_a_run_without_a_plan_is_not_outdated(self, make, make_run, finish, folder):
        """Oracle: the message, and its scores, which are still there."""
        without_plan, run = make_run(task="ner", variant="baseline"), make(inputs={})
        without_plan.identity.update(inputs={})
        finish(without_plan)
        evidence = Evidence(folder, [run])
        evidence.prepare(run)
        assert evidence.state(run) == "refused" and "computation is null" in evidence.reason(run)
        assert (run.serialization_dir / "metrics.json").is_file()

    def test_a_damaged_folder_is_refused_and_the_others_are_not(self, make, finish, folder):
        """Oracle: the states, and the message."""
        damaged, other = finish(make(seed=1)), finish(make(seed=2))
        (damaged.folder / "record.json").write_text("{")
        evidence = Evidence(folder, [damaged, other])
        assert [evidence.state(damaged), evidence.state(other)] == ["refused", "trained"]
        assert "record.json must be JSON" in evidence.reason(damaged)

    def test_what_other_processes_have_finished_since_is_read(self, make, finish, folder):
        """Oracle: the states before and after."""
        run = make()
        evidence = Evidence(folder, [run])
        Evidence(folder, [run]).note(Outcome(finish(run)), None)
        assert evidence.state(run) == "trained"
        evidence.read()
        assert evidence.state(run) == "finished"

    def test_what_another_process_is_writing_is_no_file_yet(self, noted, folder):
        """Oracle: nothing is refused."""
        run = noted()
        path = path_of(folder, run)
        path.with_name(f"_tmp-{'a' * 32}-{path.name}").write_text("{")
        evidence = Evidence(folder, [run])
        assert not evidence.refused and evidence.state(run) == "finished"

    def test_files_of_runs_may_lie_in_folders_that_are_linked(self, noted, folder, tmp_path):
        """Oracle: the state of a run whose file another disk has."""
        run = noted()
        (folder / "ner").rename(tmp_path / "elsewhere")
        (folder / "ner").symlink_to(tmp_path / "elsewhere")
        assert Evidence(folder, [run]).state(run) == "finished"

    def test_a_run_of_another_plan_is_refused(self, noted, make, folder):
        """Oracle: the messages for other settings, and for a seed that the plan does not have."""
        noted()
        other = make(value=2)
        evidence = Evidence(folder, [other])
        assert "must be the run of the plan, but is another: config" in evidence.reason(other)
        assert evidence.finished([other]) == []
        second = make(seed=2)
        evidence = Evidence(folder, [second])
        assert [*evidence.refused] == [str(folder / "ner" / "baseline" / "1.json")]
        assert "is not a run of this plan" in evidence.refused[str(folder / "ner" / "baseline" / "1.json")]

    def test_a_damaged_file_is_refused_and_not_trained_again(self, noted, folder):
        """Oracle: the state and the message."""
        run = noted()
        path = path_of(folder, run)
        path.write_text(path.read_text().replace("50.0", "55.0"))
        evidence = Evidence(folder, [run])
        assert evidence.state(run) == "refused" and "is damaged or was changed" in evidence.reason(run)
        assert evidence.finished([run]) == []

    @pytest.mark.parametrize(("dev", "says"), [(50.0, "the same scores"), (51.0, "other scores")])
    def test_a_run_that_is_there_twice_is_refused(self, noted, folder, dev, says):
        """Oracle: the message names both files; with other scores, neither of them counts."""
        run = noted()
        path = path_of(folder, run)
        write_sealed(folder / "a copy.json", {**read_sealed(path), "dev": dev, "seconds": 1.5})
        evidence = Evidence(folder, [run])
        message = evidence.refused[str(folder / "a copy.json")]
        assert str(path) in message and says in message
        assert len(evidence.finished([run])) == (1 if dev == 50.0 else 0)

    def test_a_file_with_other_scores_than_the_folder_of_the_run_is_refused(self, noted, finish, folder):
        """Oracle: the message; with the same scores, the state."""
        run = noted()
        finish(run, 0.625)
        assert "(dev 50.00) than the same run in" in Evidence(folder, [run]).reason(run)
        shutil.rmtree(run.folder)
        finish(run, 0.5)
        assert Evidence(folder, [run]).state(run) == "finished"

    def test_a_failure_is_noted_and_an_interruption_is_not(self, make, folder):
        """Oracle: the states and reasons of the next call."""
        failed, ended = make(seed=1), make(seed=2)
        evidence = Evidence(folder, [failed, ended])
        evidence.note(Outcome(failed, "ended with status 1: nan (see log.txt)", "ended with status 1: nan"), None)
        evidence.note(Outcome(ended, "was killed by signal 15"), None)
        evidence = Evidence(folder, [failed, ended])
        assert [evidence.state(failed), evidence.state(ended)] == ["failed", "to run"]
        assert evidence.reason(failed) == "ended with status 1: nan"

    def test_a_run_without_a_number_as_its_score_has_failed(self, make, finish, folder):
        """Oracle: the state, and the message without folders of this machine."""
        run = finish(make())
        (run.serialization_dir / "metrics_epoch_0.json").write_text(
            json.dumps({"validation_f1-measure-overall": float("nan")})
        )
        evidence = Evidence(folder, [run])
        outcome = evidence.note(Outcome(run), None)
        assert "'epochs' must be numbers" in outcome.error
        assert Evidence(folder, [run]).state(run) == "failed"

    def test_a_file_that_cannot_be_written_is_an_error_of_this_run_alone(self, make, finish, folder):
        """Oracle: the message, where the folder of the task is a file."""
        run = finish(make())
        folder.mkdir()
        (folder / "ner").write_text("")
        outcome = Evidence(folder, [run]).note(Outcome(run), None)
        assert "cannot be noted" in outcome.error

    def test_on_a_full_disk_there_is_no_file_and_the_next_call_writes_it(self, make, finish, folder):
        """Oracle: the message, the folder, and the states; a real limit of the size of files."""
        run = finish(make())
        evidence = Evidence(folder, [run])
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            outcome = evidence.note(Outcome(run), None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert re.search(r"is finished, but cannot be noted: .*File too large: '.*/baseline/1\.json'", outcome.error)
        assert outcome.failure is None and not any(path.is_file() for path in folder.rglob("*"))
        again = Evidence(folder, [run])
        assert again.state(run) == "trained" and again.finished([run]) == []
        assert again.note(Outcome(run), None).error is None
        assert again.state(run) == "finished"

    def test_sentences_are_measured_once_and_added_to_the_file(self, make, finish, write_archive, folder, monkeypatch):
        """Oracle: the numbers in the file of the next call; what cannot be measured leaves the file as it was."""
        run = finish(make())
        evidence = Evidence(folder, [run])
        assert not evidence.lacks_sentences(run)
        evidence.note(Outcome(run), None)
        assert not evidence.lacks_sentences(run), "no archive"
        write_archive(run.serialization_dir / "model.tar.gz", b"")
        before = path_of(folder, run).read_bytes()
        measured = [[(1, 1, 1)], [(1, 4, 4), (0, 0, 0)]]
        monkeypatch.setattr(evidence_module, "scores_by_sentence", lambda task, archive: measured.pop(0))
        assert "must give the score of the run, 25.00, but give 100.00" in evidence.note_sentences(run)
        assert evidence.lacks_sentences(run) and path_of(folder, run).read_bytes() == before
        assert evidence.note_sentences(run) is None and not evidence.lacks_sentences(run)
        ((found,), again) = evidence.finished([run]), Evidence(folder, [run])
        assert found.sentences.tolist() == [[1, 4, 4], [0, 0, 0]] and not again.lacks_sentences(run)

    def test_without_a_test_set_there_are_no_sentences(self, make, finish, write_archive, folder):
        """Oracle: whether any are to be measured, of a run that is finished and has its model."""
        run = finish(make(), test=None)
        write_archive(run.serialization_dir / "model.tar.gz", b"")
        evidence = Evidence(folder, [run])
        evidence.note(Outcome(run), None)
        assert evidence.state(run) == "finished" and not evidence.lacks_sentences(run)

    def test_the_sentences_of_another_model_are_not_measured(self, make, finish, write_archive, folder):
        """Oracle: whether any are to be measured, with the folder of the run, and with that of other settings."""
        run = finish(make())
        write_archive(run.serialization_dir / "model.tar.gz", b"")
        evidence = Evidence(folder, [run])
        evidence.note(Outcome(run), None)
        assert evidence.lacks_sentences(run)
        shutil.rmtree(run.folder)
        finish(make(value=2))
        write_archive(run.serialization_dir / "model.tar.gz", b"")
        assert not evidence.lacks_sentences(run)
