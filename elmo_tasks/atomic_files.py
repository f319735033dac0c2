"""Files that are there whole or not at all, whenever the process or the machine stops."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

__all__ = ["TEMPORARY", "atomic_file", "sync"]

# What readers of Parquet folders leave out, as all that begins with an underscore.
TEMPORARY = "_tmp-"


@contextmanager
def atomic_file(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """
    A path to write to, whose file takes the place of `path` at the end of the block, once it is on the disk. After an
    error, nothing is left.

    # Parameters

    path : `Path`
        The file that there will be.
    folder : `Path`, optional (default = `None`)
        Where to write, on the same file system. `None`: beside `path`.
    """
    # Not the number of the process: on two machines two processes may have the same.
    temporary = (folder or path.parent) / f"{TEMPORARY}{uuid4().hex}-{path.name}"
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
