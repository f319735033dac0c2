"""
HDF5 files: written to a disk that may be full, where HDF5 itself ends the process with a segmentation fault; and read
from strangers, for whom HDF5 opens other files and allocates any size.
"""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

__all__ = ["new_hdf5", "storage_problem"]

# gzip makes zeros a thousandth of their size; what is larger is no array that was ever computed.
_MAX_RATIO = 2000
_FREE_BYTES = 2**20


def storage_problem(dataset: h5py.Dataset) -> str | None:
    """Why an array must not be read, as the end of a sentence; `None` if all of it is stored in its own file."""
    if dataset.external:
        return f"its numbers lie in another file ({dataset.external[0][0]})"
    if dataset.is_virtual:
        return "it is a view of other files"
    stored = dataset.id.get_storage_size()
    if dataset.nbytes > _FREE_BYTES + _MAX_RATIO * stored:
        return f"claims {dataset.nbytes:,} bytes of which {stored:,} are stored"
    return None


@contextmanager
def new_hdf5(path: Path, **options: Any) -> Iterator[tuple[h5py.File, Callable[[], None]]]:
    """
    A new HDF5 file, and a function that raises the error of the disk if there was one since. It is called once more at
    the end of the block; where much is written, call it often, since what the disk does not take stays in memory.

    # Parameters

    path
        The file. One that is there is overwritten.
    options
        As `h5py.File` takes them.

    # Raises

    `OSError`
        If the file cannot be written, with its name.
    """
    with open(path, "w+b", buffering=0) as raw:
        disk = _Disk(raw)
        with h5py.File(disk, "w", **options) as file:
            yield file, disk.check
        disk.check()


class _Disk:
    """
    The file under HDF5, which is never told of a full disk: where a write fails, or what was written cannot be read
    back, HDF5 ends the whole process. The error is kept for `check`; what the disk does not take stays in memory until
    then.
    """

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw
        self._error: OSError | None = None
        # Places in the file, and the bytes there.
        self._not_written: list[tuple[int, bytes]] = []
        self.seek, self.tell, self.flush = raw.seek, raw.tell, raw.flush

    def read(self, size: int = -1) -> bytes:
        # h5py takes an object that has `read` for a file, and reads with `readinto`.
        return self._raw.read(size)

    def readinto(self, buffer: Any) -> int:
        start, target = self._raw.tell(), memoryview(buffer).cast("B")
        n_bytes = self._raw.readinto(target)
        for place, data in self._not_written:
            first, last = max(place, start), min(place + len(data), start + len(target))
            if first < last:
                target[first - start : last - start] = data[first - place : last - place]
                n_bytes = max(n_bytes, last - start)
        self._raw.seek(start + n_bytes)
        return n_bytes

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        try:
            self._write(left)
        except OSError as error:
            self._error = error
        return len(left)

    def _write(self, left: memoryview) -> None:
        # A disk with too little room takes a part of the data, and fails for the rest alone.
        try:
            while self._error is None and left:
                left = left[self._raw.write(left) :]
        finally:
            if left:
                self._not_written.append((self._raw.tell(), bytes(left)))
                self._raw.seek(len(left), os.SEEK_CUR)

    def truncate(self, size: int | None = None) -> int:
        try:
            self._raw.truncate(size)
        except OSError as error:
            self._error = self._error or error
        return self._raw.tell()

    def check(self) -> None:
        if self._error is not None:
            raise OSError(self._error.errno, self._error.strerror, self._raw.name) from self._error
