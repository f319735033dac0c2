"""Tests of the record in the folder of a run."""

import fcntl
import json

import pytest

from elmo_tasks.replication.train.record import (
    differences,
    is_whole,
    mark_finished,
    read_record,
    state_of,
    status,
    write_record,
)


class TestStatus:
    def test_a_run_is_to_run_then_interrupted_then_finished(self, make_run):
        """Oracle: the files that `allennlp train` writes, one after the other."""
        run = make_run()
        assert status(run) == "to run"
        run.serialization_dir.mkdir(parents=True)
        write_record(run)
        assert status(run) == "to run"
        (run.serialization_dir / "model_state_e1_b0.th").touch()
        assert status(run) == "interrupted"
        (run.serialization_dir / "metrics.json").write_text("{}")
        assert status(run) == "interrupted"
        mark_finished(run.folder)
        assert status(run) == "finished"

    def test_a_whole_archive_next_to_the_scores_is_the_end_too(self, make_run, write_archive):
        """Oracle: what a training leaves whose parent was killed; half of the archive is not enough."""
        run = make_run()
        run.serialization_dir.mkdir(parents=True)
        write_record(run)
        archive = run.serialization_dir / "model.tar.gz"
        write_archive(archive, bytes(range(256)) * 400)
        assert not is_whole(run.serialization_dir)
        (run.serialization_dir / "metrics.json").write_text("{}")
        assert status(run) == "finished"
        archive.write_bytes(archive.read_bytes()[:-100])
        assert status(run) == "to run"

    def test_a_lock_that_is_held_is_a_run_in_progress(self, make_run):
        """Oracle: a lock of our own; how far the run is does not depend on it."""
        run = make_run()
        run.folder.mkdir(parents=True)
        write_record(run)
        with open(run.folder / "lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert (status(run), state_of(run)) == ("in progress", "to run")
        assert status(run) == "to run"

    def test_another_run_in_the_folder_is_refused(self, make_run):
        """Oracle: the message names what differs, the folder and the remedy."""
        make_run().folder.mkdir(parents=True)
        write_record(make_run())
        with pytest.raises(ValueError, match=r"snli/both/1 .*config.trainer.num_epochs is 1, not 2.*--results"):
            status(make_run(value=2))

    def test_a_serialization_directory_without_a_record_is_refused(self, make_run):
        """Oracle: the message."""
        make_run().serialization_dir.mkdir(parents=True)
        with pytest.raises(ValueError, match="has none"):
            status(make_run())


class TestRecord:
    def test_it_says_what_was_run_and_with_what(self, make_run):
        """Oracle: the run, and the names of the packages."""
        run = make_run()
        run.folder.mkdir(parents=True)
        assert read_record(run.folder) is None
        write_record(run)
        record = read_record(run.folder)
        assert (record["identity"], record["digest"], record["finished"]) == (run.identity, run.digest, None)
        assert set(record["versions"]) == {"elmo_tasks", "allennlp", "torch"}

    def test_a_record_that_was_removed_is_missed(self, make_run):
        """Oracle: the message."""
        with pytest.raises(FileNotFoundError, match="has none"):
            mark_finished(make_run().folder)

    def test_differences_are_named_by_their_place(self):
        """Oracle: by hand."""
        assert differences({"a": {"b": 1, "c": [1]}}, {"a": {"b": 1, "c": [2]}, "d": 3}) == [
            "a.c is [1], not [2]",
            "d is null, not 3",
        ]
        assert differences(json.loads("[1]"), [1]) == []
