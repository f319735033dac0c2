"""A store of arrays by key on disk, shared by processes and robust against disk errors."""

import logging
import os
import threading
from collections.abc import Mapping, Sequence

import lmdb
import numpy as np

from elmo_tasks.bilm.cache.lmdb_file import MIN_BYTES, LmdbFile

__all__ = ["LayerStore"]

logger = logging.getLogger(__name__)


class LayerStore:
    """
    Arrays by key in a folder of limited size: the least recently used are evicted. Processes and threads may read and
    write at the same time, and may be killed: an array is stored whole or not at all. A power failure can lose the last
    ones.

    A damaged array counts as missing, and so does one that is not finite. Where the disk fails (full, not writable, a
    file of another kind), another process keeps the write lock for 20 seconds, or other users could have written to the
    folder (see `check_ownership`), the store turns itself off for this process, with one warning. A file that another
    program cuts off while it is open ends the process, since it is mapped into memory.

    # Parameters

    folder
        On a local disk: LMDB's locks do not work across machines. It is created at the first use if its parent exists,
        so that a path from another machine creates no folders.
    max_bytes
        The size limit of the file in bytes, at least 16 MiB. By default 20 GB, or half of what the disk has free. The
        first store of a process for a folder decides. It is enforced by `LmdbFile._make_room`.

    # Raises

    `ValueError`
        If `max_bytes` is too small.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int | None = None) -> None:
        if max_bytes is not None and (not isinstance(max_bytes, int) or max_bytes < MIN_BYTES):
            raise ValueError(
                f"the size limit of a layer cache must be a whole number of bytes, at least {MIN_BYTES}, "
                f"but is {max_bytes!r}"
            )
        self.folder = os.path.realpath(os.path.expanduser(folder))
        self._max_bytes = max_bytes

    def read(self, targets: Sequence[tuple[bytes, np.ndarray]], dtype: np.dtype) -> list[bool]:
        """
        Looks arrays up.

        # Parameters

        targets
            Keys, and the arrays that receive what is found. The content of the others is undefined.
        dtype
            The type in which they were written.

        # Returns

        `List[bool]`
            Which were found, complete and of the right shape.
        """
        try:
            file = self._file()
            if file is not None:
                return file.read(targets, dtype)
        except (lmdb.Error, OSError, OverflowError) as error:
            self._turn_off(error)
        return [False] * len(targets)

    def write(self, arrays: Mapping[bytes, np.ndarray]) -> None:
        """Stores arrays by their keys (at most 511 bytes), except those that would fill a large part of the store."""
        try:
            file = self._file()
            if file is not None:
                file.write(arrays)
        except (lmdb.Error, OSError, OverflowError) as error:
            self._turn_off(error)

    def _file(self) -> LmdbFile | None:
        """Looked up at each use and never kept, so that a store can be pickled, copied and forked."""
        with _LOCK:
            if self.folder not in _FILES:
                _FILES[self.folder] = LmdbFile(self.folder, self._max_bytes)
            return _FILES[self.folder]

    def _turn_off(self, error: Exception) -> None:
        with _LOCK:
            was_on = _FILES.get(self.folder, self) is not None
            _FILES[self.folder] = None
        if was_on:
            logger.warning(
                "the layer cache '%s' is off for the rest of this process, and the layers of the biLM are computed "
                "each time: %s. A cache must be a writable folder, in a folder that exists, on a disk with free space; "
                "one that is damaged or of another version can be deleted",
                self.folder,
                # Not the error itself, whose traceback would keep the environment open as long as the record is kept.
                str(error),
            )


# LMDB allows one environment for each process and folder, however many stores there are. `None`: turned off.
_FILES: dict[str, LmdbFile | None] = {}
_LOCK = threading.Lock()


def _forget_files() -> None:
    """A forked child cannot use its parent's: LMDB's locks belong to a process. It opens its own at its first use."""
    for folder in [folder for folder, file in _FILES.items() if file is not None]:
        del _FILES[folder]
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    # No environment is opened while the process is forked.
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_forget_files)
