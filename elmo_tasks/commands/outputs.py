"""Files that commands write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmo_tasks.files.atomic_files import atomic_file

__all__ = ["check_new", "output_file"]


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """
    As `atomic_file`, in a folder that is created if it does not exist.

    # Raises

    `OSError`
        If the path is a folder, or cannot be written to.
    """
    if path.is_dir():
        raise IsADirectoryError(f"the output must be a file, but '{path}' is a folder: name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        yield file


def check_new(path: Path, *, force: bool) -> None:
    """
    Checks that a command overwrites nothing unasked.

    # Raises

    `FileExistsError`
        If there is a file at the path that `--force` does not overwrite.
    """
    if path.is_file() and not force:
        raise FileExistsError(f"{path} must not be there yet, but is: name another file, or overwrite it with --force")
