"""Files and folders that are complete or missing after a crash, and locks, which end with their process."""

import fcntl
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import filter as matching
from pathlib import Path
from uuid import uuid4

__all__ = ["atomic_file", "atomic_folder", "check_not_input", "check_replaceable", "locked", "remove_leftovers"]
__all__ += ["replace_folder"]

_TEMPORARY = re.compile("_tmp-[0-9a-f]{12}-.*")
_held: set[int] = set()


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    A temporary path next to `path`, to write to. At the end of the block, the file is synced to disk and replaces
    `path`, or the target of a link; after an error it is removed. A device or a pipe such as `/dev/stdout` is written
    to directly.
    """
    path = Path(path)
    if _is_device(path):
        yield path
        return
    target = path.resolve()
    # Keeps the suffix, because h5py and others depend on it; a longer name could exceed the file system's limit.
    temporary = target.with_name(f"_tmp-{uuid4().hex[:12]}-{path.name[-50:]}")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def remove_leftovers(folder: Path) -> None:
    """Removes the temporary files that killed processes have left in a folder, which nobody else writes to now."""
    for file in folder.iterdir():
        if _TEMPORARY.fullmatch(file.name) and file.is_file():
            file.unlink()


@contextmanager
def atomic_folder(path: str | os.PathLike[str], replaceable: Collection[str] = ()) -> Iterator[Path]:
    """
    Like `atomic_file`, for a folder; its parents are created. An existing folder is replaced as a whole if it
    contains only files with the names (or patterns) in `replaceable`.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(path, replaceable)
    unique = uuid4().hex[:12]
    temporary = path.with_name(f"_new-{unique}")
    temporary.mkdir()
    try:
        # Renamed when it is locked, so no other process mistakes it for what a killed one has left.
        with locked(temporary):
            temporary = temporary.rename(path.with_name(f"_tmp-{unique}-{path.name}"))
            yield temporary
            for child in temporary.rglob("*"):
                _sync(child)
            replace_folder(temporary, path, replaceable)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def replace_folder(folder: Path, path: Path, replaceable: Collection[str] = ()) -> None:
    """Renames a folder to `path`: see `atomic_folder`."""
    check_replaceable(path, replaceable)
    try:
        with locked(path) if path.exists() else nullcontext():
            if path.exists():
                # A folder that is not empty cannot be replaced in one step, so it is missing for an instant.
                os.replace(path, path.with_name(f"_old-{uuid4().hex[:12]}-{path.name}"))
            os.replace(folder, path)
    finally:
        _settle(path)
    _sync(path.parent)


def check_replaceable(path: Path, patterns: Collection[str]) -> None:
    """Raises a `FileExistsError` if a folder contains files whose names match none of the patterns."""
    _settle(path)
    names = os.listdir(path) if path.exists() else []
    others = set(names).difference(*(matching(names, pattern) for pattern in patterns))
    if others:
        raise FileExistsError(f"expected a new or empty folder, but it contains other files ({min(others)}): {path}")


def _settle(path: Path) -> None:
    """Puts back the folder that a killed `replace_folder` has moved away, and removes what is left of others."""
    for kind in ("old", "tmp"):
        for left in path.parent.glob(f"_{kind}-{'[0-9a-f]' * 12}-*"):
            # A living process holds the lock.
            if left.is_dir() and left.name[18:] == path.name:
                with suppress(BlockingIOError, FileNotFoundError), locked(left) as is_left:
                    if is_left and kind == "old" and not path.exists():
                        os.replace(left, path)
                    elif is_left:
                        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """
    Locks a folder until the end of the block or of the process; others get a `BlockingIOError`. Yields whether the file
    system has locks for folders, which some network file systems have not.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    _held.add(descriptor)
    is_locked = True
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"another process is writing {folder}: wait for it, or choose another output"
            ) from None
        except OSError:
            is_locked = False
        yield is_locked
    finally:
        if descriptor in _held:
            _held.remove(descriptor)
            os.close(descriptor)


def _release() -> None:
    """In a forked process, which may outlive the one that has the locks."""
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_release)


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
