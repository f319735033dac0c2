"""Files and folders that are complete or missing after a crash."""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

__all__ = ["atomic_file", "atomic_folder", "check_not_input"]


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    A temporary path next to `path`, to write to. At the end of the block, the file is synced to disk and replaces
    `path`; after an error it is removed. A device or a pipe such as `/dev/stdout` is written to directly.
    """
    path = Path(path)
    if _is_device(path):
        yield path
        return
    # Keeps the suffix, because h5py and others depend on it; a longer name could exceed the file system's limit.
    temporary = path.with_name(f"_tmp-{uuid4().hex[:12]}-{path.name[-50:]}")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], replaceable: Collection[str] = ()) -> Iterator[Path]:
    """
    Like `atomic_file`, for a folder; its parents are created. An existing folder is replaced as a whole if it
    contains only files with the names in `replaceable`.
    """
    path = Path(path).absolute()
    if path.exists() and any(child.name not in replaceable for child in path.iterdir()):
        raise FileExistsError(f"expected a new or empty folder, but it contains other files: {path}")
    temporary, older = (path.with_name(f"_{kind}-{path.name}") for kind in ("tmp", "old"))
    for left_by_a_kill in (temporary, older):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for child in temporary.rglob("*"):
            _sync(child)
        if path.exists():
            # A folder that is not empty cannot be replaced in one step, so it is missing for an instant.
            os.replace(path, older)
        os.replace(temporary, path)
        shutil.rmtree(older, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync(path.parent)


def check_not_input(output: Path, *inputs: str | os.PathLike[str]) -> None:
    """Raises a `ValueError` if the output would replace one of the inputs, even under a different path."""
    if output.is_file() and any(os.path.isfile(each) and os.path.samefile(each, output) for each in inputs):
        raise ValueError(f"the output would replace an input: {output}")


def _is_device(path: Path) -> bool:
    # If stdout is redirected to a file, /dev/stdout is a link to that file.
    return path.exists() and not path.is_dir() and (not path.is_file() or path.absolute().parent == Path("/dev"))


def _sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
