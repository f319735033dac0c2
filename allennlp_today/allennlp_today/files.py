"""Files that are written whole, or read line by line, and locks."""

import os
import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from uuid import uuid4

__all__ = ["atomic_file", "locked", "numbered_lines", "reason_of", "remove_leftovers"]
__all__ += ["warn_of_a_training"]

_TEMPORARY = re.compile("_tmp-[0-9a-f]{12}-.*")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """
    A temporary path, to write to. At the end of the block its file replaces `path`; after an error
    it is removed.
    """
    temporary = path.with_name(f"_tmp-{uuid4().hex[:12]}-{path.name[-50:]}")
    try:
        yield temporary
        with open(temporary, "rb+") as file:  # Windows syncs only files that are open for writing.
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(folder: Path) -> None:
    """
    Removes the temporary files that killed processes have left in a folder, which nobody else
    writes to now.
    """
    for file in folder.iterdir():
        if _TEMPORARY.fullmatch(file.name) and file.is_file():
            file.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """
    Locks a path, where a file or folder may exist, until the end of the block or of the process;
    others get a `BlockingIOError`. No effect on network file systems without locks.
    """
    # Here, because `import torch` imports this module.
    from filelock import FileLock, Timeout

    path = path.resolve()
    file = path.with_name(f"_lock-{path.name[-200:]}")
    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        message = f"another process is writing {path}: wait for it, or choose another output"
        raise BlockingIOError(message) from None
    except (OSError, NotImplementedError):
        pass
    try:
        yield
    finally:
        # On POSIX, the file is removed before the release, because `filelock` takes no lock on a
        # removed file. Windows removes it at the release.
        if lock.is_locked:
            with suppress(OSError):
                file.unlink()
        lock.release()


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """
    The lines of a file in UTF-8, or in UTF-16 with a byte order mark, each with its number, counted
    from 1.
    """
    with open(path, "rb") as binary:
        is_utf16 = binary.read(2) in (b"\xff\xfe", b"\xfe\xff")
    encoding = "utf-16" if is_utf16 else "utf-8-sig"
    with open(path, encoding=encoding, errors="surrogateescape") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.encode()
            except UnicodeEncodeError:
                raise ValueError(f"expected UTF-8: {path}, line {number}") from None
            yield number, line


def reason_of(error: Exception) -> str:
    """
    The error of a reader of a file, as one sentence, without torch's advice to load the file with
    `weights_only=False`, which would run code in it.
    """
    sentence = " ".join(str(error).split())
    if isinstance(error, pickle.UnpicklingError) or "weights_only" in sentence:
        _, mark, text = str(error).rpartition("WeightsUnpickler error: ")
        sentence = re.split(r"\. |\n", text)[0] if mark else ""
    return f"{type(error).__name__}: {sentence}"[:300].removesuffix(": ")


def warn_of_a_training(archive: str | PathLike[str]) -> None:
    """
    Warns if an archive, or the folder of a run, is the target of a training that has not ended.
    """
    path = Path(archive)
    folder = (path if path.is_dir() else path.parent).resolve()
    # Without its file there is no lock, and taking one could stop a training that starts now.
    if not folder.with_name(f"_lock-{folder.name[-200:]}").exists():
        return
    try:
        with locked(folder):
            pass
    except BlockingIOError:
        message = f"a training is running in {folder}: {path} is not its final result"
        warnings.warn(message, stacklevel=2)
