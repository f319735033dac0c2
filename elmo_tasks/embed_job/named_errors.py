"""Errors of the disk with the name of the file: those of `write` and `fsync` have none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmo_tasks.atomic_files import TEMPORARY

__all__ = ["named_errors"]


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """
    Gives each `OSError` of a number the name of the file that was to be written, instead of none or that of the
    temporary file in its place.
    """
    try:
        yield
    except OSError as error:
        name = error.filename
        if error.errno is None or (name is not None and not Path(str(name)).name.startswith(TEMPORARY)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
