import copy
import os
import pickle
import random
import resource
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lmdb
import numpy as np
import pytest

from elmo_tasks.bilm.cache import layer_store, lmdb_file
from elmo_tasks.bilm.cache.layer_store import LayerStore
from tests.bilm.store import FLOAT32, LIMIT, array, assert_off, close, end_of, fork, has, key, write


class TestLayerStore:
    @pytest.mark.parametrize("dtype", ["float32", "float16"])
    @pytest.mark.parametrize("shape", [(3, 5, 256), (3, 0, 256), (1, 1, 1), (2, 3)])
    def test_what_was_written_is_read(self, store, shape, dtype):
        """Oracle: the array itself, bit for bit, at once and in a later process; a float32 takes every float16."""
        written = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        written.flat[:1] = np.finfo(dtype).smallest_subnormal
        store.write({key(0): written})
        for _ in range(2):
            target = np.zeros(shape, np.float32)
            assert store.read([(key(0), target)], np.dtype(dtype)) == [True]
            assert target.astype(dtype).tobytes() == written.tobytes()
            close()

    def test_what_was_not_written_is_not_found(self, store):
        """Oracle: by hand; other shapes and types of the same key among it."""
        write(store, 0)
        assert has(store, 0, 1, 0) == [True, False, True]
        assert store.read([(key(0), np.zeros((3, 21, 256), np.float32))], FLOAT32) == [False]
        assert store.read([(key(0), np.zeros((3, 20, 512), np.float32))], np.dtype("float16")) == [False]

    def test_arrays_may_be_views(self, store):
        """Oracle: the array of which they are a part, in writing and in reading."""
        whole = np.random.default_rng(0).standard_normal((3, 7, 5, 8)).astype(np.float32)
        store.write({key(0): whole[:, 2, :4]})
        target = np.zeros_like(whole)
        assert store.read([(key(0), target[:, 2, :4])], FLOAT32) == [True]
        assert np.array_equal(target[:, 2, :4], whole[:, 2, :4])
        assert np.count_nonzero(target) == 3 * 4 * 8

    def test_the_last_writing_counts(self, store):
        """Oracle: the second array."""
        store.write({key(0): array(1)})
        write(store, 0)
        assert has(store, 0) == [True]

    def test_much_at_once_is_written_too(self, store):
        """Oracle: by hand: 6 MB, of which a transaction takes 1 MB."""
        write(store, *range(100))
        assert all(has(store, *range(100)))

    def test_an_array_that_is_too_large_is_passed_over(self, store, warnings):
        """Oracle: the others, and no warning."""
        store.write({key(0): array(0), key(1): array(1, 10_000), key(2): array(2)})
        assert has(store, 0, 2) == [True, True]
        assert store.read([(key(1), array(1, 10_000))], FLOAT32) == [False]
        assert not warnings

    def test_it_can_be_copied_and_pickled(self, store):
        """Oracle: the store itself, open before and after."""
        for other in (copy.deepcopy(store), pickle.loads(pickle.dumps(store))):
            write(store, 0)
            assert has(other, 0) == [True]
            assert has(pickle.loads(pickle.dumps(other)), 0) == [True]

    def test_two_names_of_a_folder_are_one(self, store, tmp_path):
        """Oracle: LMDB, which refuses to open a folder twice in a process."""
        (tmp_path / "other").symlink_to(tmp_path / "cache")
        write(store, 0)
        assert has(LayerStore(str(tmp_path / "other"), LIMIT), 0) == [True]

    @pytest.mark.parametrize("max_bytes", [0, -1, 2**24 - 1, 1e9, "20 GB", True])
    def test_a_limit_that_is_none_is_an_error(self, tmp_path, max_bytes):
        """Oracle: the message says rule and value."""
        with pytest.raises(ValueError, match=f"at least 16777216, but is {max_bytes!r}"):
            LayerStore(tmp_path, max_bytes)


class TestProcesses:
    def test_a_forked_child_may_use_it(self, store):
        """Oracle: by hand, where parent and child have both used it before and after."""
        write(store, 0)

        def child() -> None:
            assert has(store, 0) == [True]
            write(store, 1)

        assert end_of(fork(child)) == 0
        assert has(store, 0, 1) == [True, True]
        write(store, 2)
        assert all(has(store, 0, 1, 2))

    def test_threads_may_use_it(self, store, warnings, monkeypatch):
        """Oracle: by hand; all of them open it at once."""
        monkeypatch.setattr(lmdb_file, "_MAX_SECONDS_OF_WAITING", 600)

        def thread(number: int) -> list[bool]:
            write(store, number, number + 8)
            return has(store, number, number + 8)

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(thread, range(8))) == [[True, True]] * 8
        assert not warnings

    def test_several_may_write_at_once(self, store, warnings, monkeypatch):
        """
        Oracle: what each wrote; `has` compares what it finds. The same keys and others, beyond the limit, so that what
        a child wrote may be gone when it looks, if it was suspended between the two; but what is written alone stays.
        """
        # A busy machine may suspend whoever has the lock for longer than the others wait.
        monkeypatch.setattr(lmdb_file, "_MAX_SECONDS_OF_WAITING", 600)

        def child() -> None:
            for _ in range(30):
                numbers = random.sample(range(600), 8)
                has(store, *numbers)
                write(store, *numbers)
                has(store, *numbers)
            assert not warnings

        assert [end_of(child) for child in [fork(child) for _ in range(4)]] == [0] * 4
        write(store, *range(8))
        assert all(has(store, *range(8)))

    def test_killed_while_it_is_made_it_can_be_made(self, tmp_path, warnings):
        """Oracle: by hand."""
        for number in range(20):
            store = LayerStore(tmp_path / str(number), LIMIT)
            child = fork(lambda store=store: write(store, 0))
            time.sleep(number * 0.0003)
            os.kill(child, signal.SIGKILL)
            end_of(child)
            has(store, 0)
            write(store, 0, 1)
            assert has(store, 0, 1) == [True, True]
        assert not warnings

    def test_killed_at_any_moment_it_is_whole(self, store, warnings):
        """Oracle: `has` compares all that it finds; the last array that was written for certain must be there."""
        moments = random.Random(0)
        for number in range(40):
            child = fork_writer(store)
            time.sleep(moments.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
            assert end_of(child) == -signal.SIGKILL
            close()
            has(store, *range(600))
            write(store, 1000 + number)
            assert has(store, 1000 + number) == [True]
        assert any(has(store, *range(600)))
        assert not warnings


class TestSuspendedProcess:
    def test_it_stops_no_other_that_writes(self, store, warnings, monkeypatch):
        """Oracle: one warning, which says why, with the limit; what was written before and after is there."""
        write(store, 0)

        def writer() -> None:
            with store._file()._writing():
                os.kill(os.getpid(), signal.SIGSTOP)
            write(store, 1)

        child = fork(writer)
        os.waitpid(child, os.WUNTRACED)
        monkeypatch.setattr(lmdb_file, "_MAX_SECONDS_OF_WAITING", 0.1)
        try:
            assert has(store, 0) == [True]
            write(store, 2)
            assert_off(store, warnings, "another process has been writing to it for more than 0.1 seconds")
        finally:
            os.kill(child, signal.SIGCONT)
        assert end_of(child) == 0
        close()
        assert has(store, 0, 1, 2) == [True, True, False]

    def test_suspended_at_any_moment_it_stops_no_other(self, store, monkeypatch):
        """Oracle: processes that open, read and write meanwhile end; killed, it has left no damage."""
        moments = random.Random(0)
        write(store, *range(30))
        for number in range(6):
            child = fork_writer(store)
            time.sleep(moments.uniform(0.0, 0.05))
            os.kill(child, signal.SIGSTOP)
            with monkeypatch.context() as patched:
                patched.setattr(lmdb_file, "_MAX_SECONDS_OF_WAITING", 0.05)
                other = fork(lambda: (has(store, *range(30)), write(store, *range(600, 630))))
            try:
                assert status_within(120, other) == 0
            finally:
                os.kill(child, signal.SIGKILL)
            assert end_of(child) == -signal.SIGKILL
            close()
            write(store, 1000 + number)
            assert has(store, 1000 + number) == [True]


def fork_writer(store: LayerStore) -> int:
    """A child that writes without end, and has begun to."""
    reading, writing = os.pipe()

    def child() -> None:
        write(store, *random.sample(range(600), 8))
        os.write(writing, b"x")
        for _ in range(10_000):
            write(store, *random.sample(range(600), 8))

    number = fork(child)
    os.close(writing)
    assert os.read(reading, 1)
    os.close(reading)
    return number


def status_within(seconds: float, child: int) -> int | None:
    """The exit status of a child; `None`, after it was killed, if it has not ended by then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    end_of(child)
    return None


class TestDiskTrouble:
    def test_a_folder_that_is_a_file(self, tmp_path, warnings):
        """Oracle: one warning; the file is what it was."""
        (tmp_path / "file").write_text("mine")
        assert_off(LayerStore(tmp_path / "file"), warnings, "File exists")
        assert (tmp_path / "file").read_text() == "mine"

    @pytest.mark.parametrize("path", ["missing/cache", "file/cache"])
    def test_a_folder_in_none(self, tmp_path, warnings, path):
        """Oracle: one warning; nothing is made, since the path may be one of another machine."""
        (tmp_path / "file").touch()
        assert_off(LayerStore(tmp_path / path), warnings)
        assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc, which is not writable")
    def test_a_folder_that_cannot_be_made(self, warnings):
        """Oracle: one warning."""
        assert_off(LayerStore("/proc/cache"), warnings)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_cannot_be_written_to(self, tmp_path, warnings):
        """Oracle: one warning."""
        (tmp_path / "cache").mkdir(mode=0o500)
        assert_off(LayerStore(tmp_path / "cache"), warnings, "Permission denied")

    def test_a_file_that_may_not_grow(self, store, warnings):
        """Oracle: a child with the limit of the system; one warning; the parent finds only what is whole."""

        def child() -> None:
            write(store, 0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
            for number in range(1, 50):
                write(store, number)
                has(store, *range(50))
            assert len(warnings) == 1
            assert not any(has(store, *range(50)))

        assert end_of(fork(child)) == 0
        assert 5 < sum(has(store, *range(50))) < 40
        write(store, 100)
        assert has(store, 100) == [True]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
    def test_a_full_disk(self, tmp_path, warnings):
        """Oracle: a disk of 2 MB; one warning."""
        disk = tmp_path / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("needs the right to mount a disk")
        try:
            store = LayerStore(disk / "cache", LIMIT)
            for number in range(50):
                write(store, number)
                has(store, *range(50))
            assert [record.levelname for record in warnings] == ["WARNING"]
        finally:
            close()
            subprocess.run(["umount", "--lazy", str(disk)], check=True)

    @pytest.mark.parametrize("method", ["read", "write"])
    @pytest.mark.parametrize("error", [lmdb.DiskError, lmdb.CorruptedError, lmdb.ReadersFullError, OSError])
    def test_trouble_in_use(self, store, warnings, monkeypatch, method, error):
        """Oracle: one warning, with the error."""

        def fail(*args: object) -> None:
            raise error("the disk is gone")

        write(store, 0)
        monkeypatch.setattr(layer_store.LmdbFile, method, fail)
        getattr(store, method)({} if method == "write" else [(key(0), array(0))], *[FLOAT32][: method == "read"])
        assert_off(store, warnings, "the disk is gone")
