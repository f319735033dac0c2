"""Files that are written whole or not at all, whenever the process or the machine stops."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

__all__ = ["TEMPORARY", "atomic_file", "sync"]

# Readers of Parquet folders skip names that begin with an underscore.
TEMPORARY = "_tmp-"


@contextmanager
def atomic_file(path: Path, *, folder: Path | None = None, exclusive: bool = False) -> Iterator[Path]:
    """
    A path to write to, as text or bytes, by this process or another: its file replaces `path` at the end of the block,
    once it is on the disk. After an error in the block, nothing is left.

    # Parameters

    path
        The file that there will be.
    folder
        Where to write until then, on the same file system. `None`: next to `path`.
    exclusive
        Whether no other process writes this file at the same time, because of a lock for example. The temporary file
        then always has the same name, so that what a killed process has left is overwritten and does not pile up.
    """
    # Not the number of the process: on two machines two processes may have the same.
    mark = "" if exclusive else f"{uuid4().hex}-"
    temporary = (folder or path.parent) / f"{TEMPORARY}{mark}{path.name}"
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Waits until a file, or the list of files of a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
