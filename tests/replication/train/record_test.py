"""Tests of the record in the folder of a run."""

import fcntl
import json
import os
import random
import threading

import pytest

from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication.train import record
from elmo_tasks.replication.train.record import (
    check_scores,
    differences,
    is_whole,
    locked,
    mark_finished,
    read_record,
    state_of,
    status,
    training_seconds,
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


class TestLocked:
    def test_a_look_of_another_does_not_stop_a_start(self, tmp_path, monkeypatch):
        """Oracle: none raised, where another looked at the lock a moment before."""
        monkeypatch.setattr("elmo_tasks.replication.train.record._SECONDS_FOR_A_LOOK", 30.0)
        with locked(tmp_path):
            pass
        with open(tmp_path / "lock", "rb") as look:
            fcntl.flock(look, fcntl.LOCK_SH)
            threading.Timer(0.0, fcntl.flock, [look, fcntl.LOCK_UN]).start()
            with locked(tmp_path):
                pass

    def test_a_second_start_is_refused(self, tmp_path):
        """Oracle: the message."""
        with locked(tmp_path), pytest.raises(BlockingIOError, match="is being trained by another process"):
            with locked(tmp_path):
                raise AssertionError


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

    def test_no_flipped_bit_goes_unseen(self, make_run, finish):
        """Oracle: an error that names the file and the remedy, or, in white space, the same content."""
        run = finish(make_run())
        path, record, places = run.folder / "record.json", read_record(run.folder), random.Random(0)
        whole = path.read_bytes()
        for _ in range(40):
            content = bytearray(whole)
            content[places.randrange(len(whole))] ^= 1 << places.randrange(8)
            path.write_bytes(content)
            try:
                assert read_record(run.folder) == record
            except ValueError as error:
                assert "record.json" in str(error) and "--results" in str(error)

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"identity": {}, "finished": null}']
    )
    def test_a_damaged_record_is_named(self, make_run, content):
        """Oracle: the message; the last is that of an earlier version, without a checksum."""
        run = make_run()
        run.folder.mkdir(parents=True)
        (run.folder / "record.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"record.json .*: move the folder away, or name another with --results"):
            state_of(run)

    @pytest.mark.parametrize(
        ("key", "value"), [("identity", []), ("versions", None), ("finished", 1), ("files", {"/etc/passwd": "0"})]
    )
    def test_wrong_values_with_a_right_checksum_are_refused(self, make_run, finish, key, value):
        """Oracle: the message."""
        run = finish(make_run())
        path = run.folder / "record.json"
        write_sealed(path, {**read_sealed(path), key: value})
        with pytest.raises(ValueError, match=r"record.json must (have|list) .*--results"):
            state_of(run)

    def test_scores_that_change_after_the_end_are_noticed(self, make_run, finish):
        """Oracle: the messages, by the command that reads them and by verify; a run without an end has no checksums."""
        run = finish(make_run())
        check_scores(run.folder)
        metrics = run.serialization_dir / "metrics.json"
        metrics.write_text(metrics.read_text().replace("0.5", "0.9"))
        with pytest.raises(ValueError, match=r"metrics.json is damaged or was replaced: .* but record.json says"):
            check_scores(run.folder)
        metrics.unlink()
        with pytest.raises(FileNotFoundError, match=r"metrics.json must be there, since record.json lists it"):
            check_scores(run.folder)
        write_record(run)
        check_scores(run.folder)

    def test_differences_are_named_by_their_place(self):
        """Oracle: by hand."""
        assert differences({"a": {"b": 1, "c": [1]}}, {"a": {"b": 1, "c": [2]}, "d": 3}) == [
            "a.c is [1], not [2]",
            "d is null, not 3",
        ]
        assert differences(json.loads("[1]"), [1]) == []


class TestTrainingSeconds:
    def test_those_of_all_parts_are_summed_without_the_time_between_them(self, make_run, monkeypatch):
        """Oracle: by hand: 50 and 30 seconds, each from its start to the last line of the log."""
        run = make_run()
        run.folder.mkdir(parents=True)
        log = run.folder / "log.txt"

        def train(started: float, last_line: float, machine: str, *, resumes: bool) -> float:
            monkeypatch.setattr(record.time, "time", lambda: started)
            monkeypatch.setattr(record, "machine", lambda: machine)
            write_record(run, resumes=resumes)
            log.touch()
            os.utime(log, (last_line, last_line))
            return training_seconds(run.folder, read_record(run.folder))

        assert train(1000.0, 1050.0, "a", resumes=False) == 50.0
        assert train(5000.0, 5030.0, "b", resumes=True) == 80.0
        assert read_record(run.folder)["training"]["machines"] == ["a", "b"]
        mark_finished(run.folder)
        assert training_seconds(run.folder, read_record(run.folder)) == 80.0
        # A copy has the times of its own.
        os.utime(log, (90000.0, 90000.0))
        assert training_seconds(run.folder, read_record(run.folder)) == 80.0
        # What begins over has the time of its own.
        assert train(9000.0, 9007.0, "b", resumes=False) == 7.0
        assert read_record(run.folder)["training"]["machines"] == ["b"]

    def test_without_a_log_or_after_a_change_of_the_clock_it_is_not_negative(self, make_run, monkeypatch):
        """Oracle: zero; and a record of an earlier version."""
        run = make_run()
        run.folder.mkdir(parents=True)
        write_record(run)
        assert training_seconds(run.folder, read_record(run.folder)) == 0.0
        (run.folder / "log.txt").touch()
        os.utime(run.folder / "log.txt", (1.0, 1.0))
        assert training_seconds(run.folder, read_record(run.folder)) == 0.0
        assert training_seconds(run.folder, {"finished": None}) == 0.0
