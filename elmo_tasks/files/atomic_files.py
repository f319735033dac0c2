"""
Files and folders that are complete or missing after a crash, and locks, which end with their
process.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

__all__ = [
    "atomic_file",
    "atomic_folder",
    "check_not_input",
    "check_replaceable",
    "check_space",
    "locked",
    "remove_leftovers",
    "replace_folder",
    "restore_folder",
]

_TEMPORARY = re.compile("_tmp-[0-9a-f]{12}-.*")


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    A temporary path next to `path`, to write to. At the end of the block, the file is synced to
    disk and replaces `path`, or the target of a link; after an error it is removed. A device or a
    pipe such as `/dev/stdout` is written to directly.
    """
    path = Path(path)
    if _is_device(path):
        yield path
        return
    target = path.resolve()
    # Keeps the suffix, because h5py and others depend on it; a longer name could exceed the file
    # system's limit.
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
    """
    Removes the temporary files that killed processes have left in a folder, which nobody else
    writes to now.
    """
    for file in folder.iterdir():
        if _TEMPORARY.fullmatch(file.name) and file.is_file():
            file.unlink()


@contextmanager
def atomic_folder(
    path: str | os.PathLike[str], replaceable: Collection[str] = ()
) -> Iterator[Path]:
    """
    Like `atomic_file`, for a folder, which is locked until the end of the block; its parents are
    created. An existing folder is replaced as a whole if it contains only files with the names (or
    patterns) in `replaceable`.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path) as is_locked:
        if is_locked:
            restore_folder(path)
        check_replaceable(path, replaceable)
        temporary = _beside(path, "tmp")
        temporary.mkdir()
        try:
            yield temporary
            replace_folder(temporary, path, replaceable)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def replace_folder(folder: Path, path: Path, replaceable: Collection[str] = ()) -> None:
    """Syncs a folder to disk and renames it to `path`, which is locked: see `atomic_folder`."""
    check_replaceable(path, replaceable)
    for child in folder.rglob("*"):
        _sync(child)
    if not path.exists():
        os.replace(folder, path)
    else:
        # A folder that is not empty cannot be replaced in one step, so it is missing for an
        # instant.
        old = _beside(path, "old")
        os.replace(path, old)
        try:
            os.replace(folder, path)
        except BaseException:
            os.replace(old, path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    _sync(path.parent)


def restore_folder(path: Path) -> None:
    """
    Puts back a locked folder that a killed process has moved away, and removes what it has left
    beside it.
    """
    for folder in _leftovers_beside(path, "old"):
        if path.exists():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            os.replace(folder, path)
    for folder in _leftovers_beside(path, "tmp"):
        shutil.rmtree(folder, ignore_errors=True)


def _beside(path: Path, purpose: str) -> Path:
    return path.with_name(f"_{purpose}-{uuid4().hex[:12]}-{path.name}")


def _leftovers_beside(path: Path, purpose: str) -> Iterator[Path]:
    """Folders with names that `_beside` has made."""
    for child in path.parent.glob(f"_{purpose}-{'[0-9a-f]' * 12}-*"):
        _, _, name = child.name.split("-", 2)
        if child.is_dir() and name == path.name:
            yield child


def check_replaceable(path: Path, patterns: Collection[str]) -> None:
    """
    Raises a `FileExistsError` if a folder contains files whose names match none of the patterns.
    """
    if not path.exists():
        return
    for name in sorted(os.listdir(path)):
        if not any(fnmatch(name, pattern) for pattern in patterns):
            problem = f"it contains other files ({name})"
            raise FileExistsError(f"expected a new or empty folder, but {problem}: {path}")


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """
    Locks a path, where a file or folder may exist, until the end of the block or of the process;
    others get a `BlockingIOError`. Yields whether the file system has locks, which some network
    file systems have not.
    """
    path = path.resolve()
    file = path.with_name(f"_lock-{path.name[-200:]}")
    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        hint = "wait for it, or choose another output"
        raise BlockingIOError(f"another process is writing {path}: {hint}") from None
    except (OSError, NotImplementedError):
        pass
    try:
        yield lock.is_locked
    finally:
        # In this order on POSIX: `filelock` does not take a lock on a removed file. Windows removes
        # it at the release.
        if lock.is_locked:
            with suppress(OSError):
                file.unlink()
        lock.release()


def check_not_input(output: Path, *inputs: str | os.PathLike[str]) -> None:
    """
    Raises a `ValueError` if the output would replace one of the inputs, even under a different
    path.
    """
    if not output.is_file():
        return
    for path in inputs:
        if os.path.isfile(path) and os.path.samefile(path, output):
            raise ValueError(f"the output would replace an input: {output}")


def check_space(path: Path, n_bytes: int, largest_file: int = 0) -> None:
    """
    Raises an `OSError` if a disk has not as many free bytes, or if the process may not write a file
    as large as `largest_file`.
    """
    free = shutil.disk_usage(path.resolve().parent).free
    if free < n_bytes:
        raise OSError(f"expected {n_bytes:,} free bytes for {path} and its parts, got {free:,}")
    limit = _largest_file()
    if limit is not None and limit < largest_file:
        needed = f"files of {largest_file:,} bytes"
        raise OSError(f"expected a limit for {needed} (ulimit -f), got {limit:,}: {path}")


def _largest_file() -> int | None:
    """The most bytes of a file that this process may write. `None`: unlimited."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if limit == resource.RLIM_INFINITY else limit


def _is_device(path: Path) -> bool:
    if not path.exists() or path.is_dir():
        return False
    # If stdout is redirected to a file, /dev/stdout is a link to that file.
    return not path.is_file() or path.absolute().parent == Path("/dev")


def _sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    flags = os.O_RDONLY
    if os.name == "nt":
        # Windows opens files only, and syncs those that are open for writing.
        if path.is_dir():
            return
        flags = os.O_RDWR
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
