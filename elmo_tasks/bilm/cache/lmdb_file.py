"""The LMDB file of the layer store: arrays by key, within a size limit."""

import math
import os
import shutil
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import lmdb
import numpy as np
from filelock import FileLock, Timeout

from elmo_tasks.files.ownership import check_ownership

__all__ = ["MIN_BYTES", "LmdbFile"]

MIN_BYTES = 2**24
"""The smallest limit. Below it, the tables of keys take too much of the space that must stay free."""

# The format of the file. The number changes when a reader of the old format would misread the new one.
_FORMAT = b"elmo_tasks layer store, format 1"
_DEFAULT_MAX_BYTES = 20 * 10**9
# LMDB keeps in memory what a transaction writes.
_MAX_BYTES_OF_PART = 2**25
_CHECKSUM = struct.Struct("<I")
_STAMP = struct.Struct(">Q")
_DATA, _LOCK = "data.mdb", "write.lock"
_FILES = (_DATA, "lock.mdb", _LOCK)
# A transaction takes seconds on a slow disk. Whoever holds the lock longer was suspended, by Ctrl-Z for example.
_MAX_SECONDS_OF_WAITING = 20.0
_SECONDS_BETWEEN_TRIES = 0.005


class LmdbFile:
    """
    An open LMDB environment that stores arrays by key. Unlike `LayerStore`, it raises errors.

    Its tables: `values`, from key to checksum and content; `stamps`, from key to stamp; `order`, stamp and key, the
    least recently used first. A stamp is a time, measured in the bytes that were ever written to the store: while
    nothing is written no time passes, and reading takes no lock.

    Who writes holds the lock of the file `write.lock`. LMDB has a lock of its own, but nothing that waits for it can
    give up, and a process that is suspended while it writes would suspend all others.

    # Parameters

    folder
        Its folder, created for this user alone if it does not exist.
    max_bytes
        The limit, at least `MIN_BYTES`: see `LayerStore`.

    # Raises

    `PermissionError`
        If others could have written it: see `check_ownership`.
    `TimeoutError`
        If another process keeps the lock for 20 seconds; from reading and writing too.
    `lmdb.Error` or `OSError`
        If it cannot be opened or is of another kind; and whenever reading or writing fails.
    """

    def __init__(self, folder: str, max_bytes: int | None) -> None:
        path = Path(folder)
        path.mkdir(mode=0o700, exist_ok=True)
        _check_folder(path)
        file = path / _DATA
        n_present = file.stat().st_size if file.exists() else 0
        if max_bytes is None:
            n_available = n_present + shutil.disk_usage(folder).free // 2
            max_bytes = max(MIN_BYTES, min(_DEFAULT_MAX_BYTES, n_available))
        self._max_bytes = max_bytes
        # Who may use the folder may use its files.
        mode = path.stat().st_mode & 0o666
        self._lock = FileLock(path / _LOCK, mode=mode)
        with self._locked():
            # The map has its full size from the start, which costs address space only: no process has to enlarge it.
            # Without `metasync` a crash of the machine can undo the last transactions, but damages none.
            self._lmdb = lmdb.open(folder, map_size=max_bytes, max_dbs=3, max_readers=1024, metasync=False, mode=mode)
            # Reading behind the end of a truncated file would kill the process.
            if (self._lmdb.info()["last_pgno"] + 1) * self._lmdb.stat()["psize"] > file.stat().st_size:
                raise lmdb.CorruptedError(f"{file} is truncated")
            # The read transaction of a process that was killed would keep old pages from being reused.
            self._lmdb.reader_check()
            with self._begin(write=True) as transaction:
                if transaction.stat()["entries"] and bytes(transaction.get(b"format", b"")) != _FORMAT:
                    raise lmdb.InvalidError(f"{file} is not a layer cache of this version of elmo_tasks")
                if not transaction.stat()["entries"]:
                    transaction.put(b"format", _FORMAT)
                self._values, self._stamps, self._order = self._tables = [
                    self._lmdb.open_db(name, transaction) for name in (b"values", b"stamps", b"order")
                ]
                is_above = self._used_bytes(transaction) > max_bytes * 7 // 8
            if is_above:
                # A former limit was larger: to free space takes some, for the list of free pages above all.
                self._lmdb.set_mapsize(n_present + max(MIN_BYTES, n_present // 8))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            lock = self._lock.acquire(_MAX_SECONDS_OF_WAITING, _SECONDS_BETWEEN_TRIES)
        except Timeout:
            raise TimeoutError(
                f"another process has been writing to it for more than {_MAX_SECONDS_OF_WAITING:g} seconds, and may "
                "be suspended"
            ) from None
        with lock:
            yield

    @contextmanager
    def _writing(self) -> Iterator[lmdb.Transaction]:
        with self._locked(), self._begin(write=True) as transaction:
            yield transaction

    def _begin(self, *, write: bool = False) -> lmdb.Transaction:
        try:
            return self._lmdb.begin(write=write, buffers=True)
        except lmdb.MapResizedError:
            # Another process has a larger limit.
            self._lmdb.set_mapsize(0)
            return self._lmdb.begin(write=write, buffers=True)

    def read(self, targets: Sequence[tuple[bytes, np.ndarray]], dtype: np.dtype) -> list[bool]:
        """See `LayerStore`."""
        found = []
        long_unused = []
        with self._begin() as transaction:
            now = _now(transaction)
            for key, target in targets:
                value = transaction.get(key, b"", db=self._values)
                array = _unpacked(value, key, target.shape, dtype)
                is_found = False
                if array is not None:
                    np.copyto(target, array)
                    # Arithmetic in float16 is slow; and the target, a part of a batch, is contiguous layer by layer.
                    is_found = _is_finite([array] if array.dtype == np.float32 else target)
                if is_found:
                    stamp = transaction.get(key, db=self._stamps)
                    # With exact times, every read would also be a write.
                    if stamp is not None and now - _unpacked_stamp(stamp) > self._max_bytes // 16:
                        long_unused.append(key)
                found.append(is_found)
        if long_unused:
            with suppress(lmdb.MapFullError), self._writing() as transaction:
                for key in long_unused:
                    # Except those that another process has removed meanwhile.
                    if transaction.get(key, db=self._stamps) is not None:
                        self._stamp(transaction, key, now)
        return found

    def write(self, arrays: Mapping[bytes, np.ndarray]) -> None:
        """See `LayerStore`."""
        for part in self._parts(arrays):
            n_bytes = sum(array.nbytes for array in part.values())
            try:
                # A separate transaction, which needs no space for what is written next.
                with self._writing() as transaction:
                    self._make_room(transaction, n_bytes)
                with self._writing() as transaction:
                    now = _now(transaction) + n_bytes
                    transaction.put(b"now", _packed_stamp(now))
                    for key, array in part.items():
                        transaction.put(key, _packed(key, array), db=self._values)
                        self._stamp(transaction, key, now)
            except lmdb.MapFullError:
                self._find_room()

    def _parts(self, arrays: Mapping[bytes, np.ndarray]) -> Iterator[dict[bytes, np.ndarray]]:
        """Groups of arrays, each for one transaction; arrays that are too large for any are omitted."""
        limit = min(_MAX_BYTES_OF_PART, self._max_bytes // 16)
        part: dict[bytes, np.ndarray] = {}
        n_bytes = 0
        for key, array in arrays.items():
            if array.nbytes <= limit:
                if n_bytes + array.nbytes > limit:
                    yield part
                    part, n_bytes = {}, 0
                part[key] = array
                n_bytes += array.nbytes
        if part:
            yield part

    def _make_room(self, transaction: lmdb.Transaction, n_bytes: int) -> None:
        """
        Removes the least recently used where `n_bytes` more would fill the store to more than 7/8, until it is filled
        to 3/4: LMDB reuses space only two transactions after it was freed, and needs some in order to free any.
        """
        if self._used_bytes(transaction) + n_bytes <= self._max_bytes * 7 // 8:
            return
        cursor = transaction.cursor(self._order)
        while self._used_bytes(transaction) + n_bytes > self._max_bytes * 3 // 4 and cursor.first():
            key = bytes(cursor.key())[_STAMP.size :]
            cursor.delete()
            transaction.delete(key, db=self._stamps)
            transaction.delete(key, db=self._values)

    def _find_room(self) -> None:
        """
        Frees space for later writes, after one failed although `_make_room` keeps some free. Freed pages cannot be
        reused while an old read transaction exists, such as that of a process that was killed. If there is none, the
        free space is fragmented or too small to delete single arrays, and all arrays are deleted.
        """
        if self._lmdb.reader_check() == 0:
            with suppress(lmdb.MapFullError), self._writing() as transaction:
                for table in self._tables:
                    transaction.drop(table, delete=False)

    def _used_bytes(self, transaction: lmdb.Transaction) -> int:
        stats = [transaction.stat(table) for table in self._tables]
        return sum(s["psize"] * (s["branch_pages"] + s["leaf_pages"] + s["overflow_pages"]) for s in stats)

    def _stamp(self, transaction: lmdb.Transaction, key: bytes, now: int) -> None:
        old = transaction.get(key, db=self._stamps)
        if old is not None:
            transaction.delete(bytes(old) + key, db=self._order)
        transaction.put(key, _packed_stamp(now), db=self._stamps)
        transaction.put(_packed_stamp(now) + key, b"", db=self._order)


def _check_folder(folder: Path) -> None:
    """Checks that the folder and its files were written by this user, and are files of this folder."""
    check_ownership(folder)
    for file in (folder / name for name in _FILES):
        if os.path.lexists(file):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise lmdb.InvalidError(f"{file} must be a file, but is a link or a folder")
            check_ownership(file)


def _now(transaction: lmdb.Transaction) -> int:
    """The number of bytes that were ever written."""
    return _unpacked_stamp(transaction.get(b"now", bytes(_STAMP.size)))


def _unpacked_stamp(stamp: bytes | memoryview) -> int:
    try:
        time: int = _STAMP.unpack(stamp)[0]
    except struct.error:
        raise lmdb.CorruptedError("one of its stamps is damaged") from None
    return time


def _packed_stamp(time: int) -> bytes:
    try:
        return _STAMP.pack(time)
    except struct.error:
        raise lmdb.CorruptedError("its stamps are at their end, so that one must have been damaged") from None


def _checksum(content: bytes | memoryview, key: bytes, shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    """Of key, shape, type and content: content under a wrong key is as bad as wrong content."""
    return _CHECKSUM.pack(zlib.crc32(content, zlib.crc32(key + repr((shape, dtype.str)).encode())))


def _packed(key: bytes, array: np.ndarray) -> bytes:
    content = array.ravel().view(np.uint8).data
    return b"".join((_checksum(content, key, array.shape, array.dtype), content))


def _unpacked(value: bytes | memoryview, key: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """The array, a view of the value and valid no longer than that; `None` if it is not the one that was written."""
    checksum, content = value[: _CHECKSUM.size], value[_CHECKSUM.size :]
    if len(content) != math.prod(shape) * dtype.itemsize or checksum != _checksum(content, key, shape, dtype):
        return None
    return np.ndarray(shape, dtype, content)


def _is_finite(parts: Iterable[np.ndarray]) -> bool:
    """Whether all numbers of contiguous arrays are finite."""
    # A sum of squares costs a third of `isfinite`, which is for numbers so large that their squares are infinite.
    return all(math.isfinite(np.vdot(part, part)) or np.isfinite(part).all() for part in parts)
