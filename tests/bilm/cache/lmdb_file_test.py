import os
import stat
from types import SimpleNamespace

import lmdb
import numpy as np
import pytest

from elmo_tasks.bilm.cache import layer_store, lmdb_file
from elmo_tasks.bilm.cache.layer_store import LayerStore
from tests.bilm.store import FLOAT32, LIMIT, array, assert_off, close, end_of, fork, has, key, write


class TestSize:
    def test_it_keeps_its_limit_whatever_comes(self, store, tmp_path, warnings):
        """Oracle: the size of the file; five times the limit are written; what came last is there."""
        for first in range(0, 1300, 10):
            write(store, *range(first, first + 10))
            assert all(has(store, *range(first, first + 10)))
        n_bytes = (tmp_path / "cache" / "data.mdb").stat().st_size
        assert LIMIT / 2 < n_bytes <= LIMIT
        assert sum(has(store, *range(1300))) * array(0).nbytes > LIMIT / 2
        assert not warnings

    def test_the_least_recently_used_gives_way(self, store):
        """Oracle: by hand: 240 arrays fill it; numbers 0 to 9 are the oldest, but in use."""
        for number in range(400):
            write(store, number)
            if number % 20 == 0:
                assert all(has(store, *range(min(10, number + 1))))
        found = has(store, *range(400))
        assert all(found[:10])
        # The others went from the first on.
        first = found.index(True, 10)
        assert 150 < first < 250
        assert all(found[first:])

    def test_it_still_works_where_nothing_can_be_freed(self, store, warnings):
        """Oracle: by hand: while an older read transaction is open, no space is reused; afterwards it is."""
        write(store, *range(200))
        reading = layer_store._FILES[store.folder]._lmdb.begin()
        for first in range(200, 600, 10):
            write(store, *range(first, first + 10))
        reading.abort()
        for _ in range(3):
            write(store, *range(10))
        assert all(has(store, *range(10)))
        assert not warnings

    @pytest.mark.parametrize(("n_free", "expected"), [(10**15, 20 * 10**9), (10**9, 5 * 10**8), (0, LIMIT)])
    def test_by_default_it_is_20_gb_or_half_of_what_is_free(self, tmp_path, monkeypatch, n_free, expected):
        """Oracle: by hand; the smallest limit there is, where the disk is full."""
        monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=n_free))
        store = LayerStore(tmp_path)
        assert has(store, 0) == [False]
        assert layer_store._FILES[store.folder]._lmdb.info()["map_size"] == expected

    def test_a_process_with_a_smaller_limit_follows(self, store, tmp_path):
        """Oracle: what another process wrote beyond the limit of this one."""
        write(store, 0)
        assert end_of(fork(lambda: write(LayerStore(tmp_path / "cache", 4 * LIMIT), *range(500)))) == 0
        assert all(has(store, *range(500)))
        write(store, 500)
        assert has(store, 500) == [True]

    def test_a_limit_may_be_lowered(self, store, tmp_path, warnings):
        """Oracle: a file of four times the limit; what comes is kept, and it does not grow by more than a limit."""
        file = tmp_path / "cache" / "data.mdb"

        def fill() -> None:
            # One at a time, as far as it goes, so that the file has hardly a free page.
            larger = LayerStore(tmp_path / "cache", 4 * LIMIT)
            for number in range(1150):
                write(larger, number)

        assert end_of(fork(fill)) == 0
        n_bytes = file.stat().st_size
        assert n_bytes > 3 * LIMIT
        for first in range(2000, 3000, 10):
            write(store, *range(first, first + 10))
            assert all(has(store, *range(first, first + 10)))
        assert sum(has(store, *range(1150))) == 0
        assert file.stat().st_size <= n_bytes + LIMIT
        assert not warnings


class TestDamage:
    def test_a_damaged_value_is_not_found(self, store, tmp_path, warnings):
        """Oracle: the others; and the array itself once it is written again."""
        write(store, 0, 1, 2)
        close()
        file = tmp_path / "cache" / "data.mdb"
        content = bytearray(file.read_bytes())
        content[content.index(array(1).tobytes()) + 1000] ^= 1
        file.write_bytes(content)
        assert has(store, 0, 1, 2) == [True, False, True]
        write(store, 1)
        assert has(store, 0, 1, 2) == [True, True, True]
        assert not warnings

    def test_a_value_under_another_key_is_not_found(self, store):
        """Oracle: by hand."""
        write(store, 0, 1)
        file = layer_store._FILES[store.folder]
        with file._lmdb.begin(write=True) as transaction:
            transaction.put(key(0), transaction.get(key(1), db=file._values), db=file._values)
        assert has(store, 0, 1) == [False, True]

    @pytest.mark.parametrize("part", [0.00001, 0.001, 0.01, 0.3, 0.6, 0.9, 0.999999])
    def test_a_file_that_was_cut_off_is_not_used(self, store, tmp_path, warnings, part):
        """Oracle: one warning; reading behind the end would kill the child."""
        for first in range(0, 100, 10):
            write(store, *range(first, first + 10))
        close()
        file = tmp_path / "cache" / "data.mdb"
        os.truncate(file, int(part * file.stat().st_size))

        def child() -> None:
            assert_off(store, warnings)

        assert end_of(fork(child)) == 0

    @pytest.mark.parametrize("content", [b"x", b"\0" * 100_000, b"not LMDB's" * 10_000], ids=["short", "zero", "text"])
    def test_a_file_of_another_kind_is_not_touched(self, store, tmp_path, warnings, content):
        """Oracle: one warning, with the folder; and the file is what it was."""
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "data.mdb").write_bytes(content)
        assert_off(store, warnings)
        assert (tmp_path / "cache" / "data.mdb").read_bytes() == content

    @pytest.mark.parametrize("name", [b"format", b"foreign"])
    def test_the_file_of_another_version_is_not_touched(self, store, tmp_path, warnings, name):
        """Oracle: one warning, which says so; and the content is what it was."""
        with lmdb.open(str(tmp_path / "cache")) as environment:
            with environment.begin(write=True) as transaction:
                transaction.put(name, b"elmo_tasks layer store, format 999")
        assert_off(store, warnings, "data.mdb is not a layer cache of this version of elmo_tasks")
        close()
        with lmdb.open(str(tmp_path / "cache")) as environment:
            with environment.begin() as transaction:
                assert list(transaction.cursor()) == [(name, b"elmo_tasks layer store, format 999")]

    @pytest.mark.parametrize("dtype", ["float32", "float16"])
    @pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
    def test_a_value_that_is_not_finite_is_not_found(self, store, warnings, dtype, number):
        """Oracle: the others, one of them with the largest number there is, whose square is infinite."""
        arrays = [np.ones((2, 3), dtype) for _ in range(3)]
        arrays[1][1, 2] = number
        arrays[2][1, 2] = np.finfo(dtype).max
        store.write({key(index): array for index, array in enumerate(arrays)})
        targets = [np.zeros((2, 3), np.float32) for _ in range(3)]
        assert store.read([(key(index), target) for index, target in enumerate(targets)], np.dtype(dtype)) == [
            True,
            False,
            True,
        ]
        assert np.array_equal(targets[2], arrays[2])
        assert not warnings

    def test_a_value_of_another_length_is_not_found(self, store, warnings):
        """Oracle: by hand; its checksum agrees."""
        write(store, 0)
        file = layer_store._FILES[store.folder]
        short = array(0).tobytes()[:-4]
        for content in (short, short + bytes(8)):
            value = lmdb_file._checksum(content, key(0), array(0).shape, FLOAT32) + content
            with file._lmdb.begin(write=True) as transaction:
                transaction.put(key(0), value, db=file._values)
            assert has(store, 0) == [False]
        assert not warnings

    @pytest.mark.parametrize(
        ("table", "stamp"), [("now", b"\xff" * 8), ("now", b"\xff" * 7), ("now", b""), ("stamps", b"1234567")]
    )
    def test_a_damaged_stamp_turns_it_off(self, store, warnings, table, stamp):
        """Oracle: one warning and no error; the next process that only reads may still find what is whole."""
        write(store, 0)
        file = layer_store._FILES[store.folder]
        with file._lmdb.begin(write=True) as transaction:
            if table == "now":
                transaction.put(b"now", stamp)
            else:
                transaction.put(key(0), stamp, db=file._stamps)
        del file, transaction
        has(store, 0)
        write(store, 1)
        assert_off(store, warnings, "stamp")


class TestFolder:
    def test_a_new_one_is_for_this_user_alone(self, store, tmp_path):
        """Oracle: the permissions, whatever the mask."""
        mask = os.umask(0)
        try:
            write(store, 0)
        finally:
            os.umask(mask)
        assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
        files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "cache").iterdir()}
        assert files == {"data.mdb": 0o600, "lock.mdb": 0o600, "write.lock": 0o600}

    @pytest.mark.parametrize("name", ["", "data.mdb", "lock.mdb", "write.lock"])
    def test_one_that_others_may_write_to_is_not_used(self, store, tmp_path, warnings, monkeypatch, name):
        """Oracle: one warning, which says how to allow it; then the array is there."""
        write(store, 0)
        close()
        (tmp_path / "cache" / name).chmod(0o777)
        assert_off(store, warnings, f"cache{'/' * bool(name)}{name}' may be written by all users")
        assert "set ELMO_TASKS_ALLOW_SHARED=1" in warnings[0].getMessage()
        close()
        monkeypatch.setenv("ELMO_TASKS_ALLOW_SHARED", "1")
        assert has(store, 0) == [True]

    @pytest.mark.parametrize("make", [os.symlink, lambda target, link: os.mkfifo(link), lambda _, link: os.mkdir(link)])
    @pytest.mark.parametrize("name", ["data.mdb", "write.lock"])
    def test_a_link_is_not_followed(self, store, tmp_path, warnings, make, name):
        """Oracle: one warning; the file that a link points to stays empty. Opening a FIFO would not return."""
        (tmp_path / "cache").mkdir()
        (tmp_path / "target").touch()
        make(tmp_path / "target", tmp_path / "cache" / name)
        assert_off(store, warnings, f"{name} must be a file")
        assert (tmp_path / "target").read_bytes() == b""
