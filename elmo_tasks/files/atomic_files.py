"""Files that are written whole or not at all, whenever the process or the machine stops."""

import errno
import os
import re
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeGuard
from uuid import uuid4

__all__ = [
    "TEMPORARY",
    "atomic_file",
    "atomic_folder",
    "check_not_input",
    "is_full",
    "naming_errors",
    "remove_leftovers",
    "sync",
]

# Readers of Parquet folders skip names that begin with an underscore.
TEMPORARY = "_tmp-"

# A full disk, a quota, and the limit of a process: errors of writing, never of reading.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: BaseException) -> TypeGuard[OSError]:
    """Whether an error says that there is no space to write, on a disk or within a limit."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def naming_errors(path: Path | str) -> Iterator[None]:
    """
    Gives an error the name of the file that is written in the block: that of a full disk, which has none, and one with
    the name of the temporary file.
    """
    try:
        yield
    except OSError as error:
        of_temporary = error.filename is not None and Path(os.fsdecode(error.filename)).name.startswith(TEMPORARY)
        if of_temporary or (is_full(error) and error.filename is None):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def atomic_file(path: Path, *, folder: Path | None = None, exclusive: bool = False) -> Iterator[Path]:
    """
    A path to write to, as text or bytes, by this process or another: its file replaces `path` at the end of the block,
    once it is on the disk. After an error in the block, nothing is left. A device or a pipe, as `/dev/stdout`, is not
    replaced but written to.

    # Parameters

    path
        The file that there will be.
    folder
        Where to write until then, on the same file system. `None`: next to `path`.
    exclusive
        Whether no other process writes this file at the same time, because of a lock for example. The temporary file
        then always has the same name, so that what a killed process has left is overwritten and does not pile up.
    """
    if _is_device(path):
        with naming_errors(path):
            yield path
        return
    # Not the number of the process: on two machines two processes may have the same. A name may be as long as the file
    # system allows; its last 50 characters, which have the suffix, are at most 200 bytes.
    name = path.name if exclusive else f"{uuid4().hex}-{path.name[-50:]}"
    temporary = (folder or path.parent) / f"{TEMPORARY}{name}"
    try:
        with naming_errors(path):
            yield temporary
            sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_not_input(output: Path, *inputs: str | os.PathLike[str]) -> None:
    """
    Checks that what is written does not replace what is read.

    # Raises

    `ValueError`
        If the output is one of the inputs, whatever their names.
    """
    # A terminal may be both.
    if output.is_file() and any(os.path.isfile(each) and os.path.samefile(each, output) for each in inputs):
        raise ValueError(
            f"the output must be another file than what is read, but {output} is both: choose another name"
        )


def remove_leftovers(path: Path, *, min_seconds: float = 86_400.0) -> None:
    """
    Removes what killed processes have left of `atomic_file(path)`. A file that has changed within `min_seconds` may be
    that of a process that still writes, and stays.
    """
    name = re.compile(re.escape(TEMPORARY) + "[0-9a-f]{32}-" + re.escape(path.name[-50:]))
    for file in path.parent.iterdir():
        if name.fullmatch(file.name):
            # Unless another process has removed it, or it is another user's.
            with suppress(OSError):
                if file.lstat().st_mtime < time.time() - min_seconds:
                    file.unlink()


@contextmanager
def atomic_folder(path: Path, replaceable: Collection[str]) -> Iterator[Path]:
    """
    A folder to write files to, which becomes `path` at the end of the block, once it is on the disk. After an error in
    the block, nothing is left, and a folder that is there stays as it was. A process that is killed at the moment when
    one folder takes the place of the other leaves the older as `_tmp-*-NAME.older`, which the next call puts back.

    # Parameters

    path
        The folder that there will be.
    replaceable
        The names of the files that may be in a folder that is there, and are replaced with it.

    # Raises

    `FileExistsError`
        If there is a file of this name, or a folder with other files.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise FileExistsError(f"{path} must be a folder, but is another file: name another folder")
    # As '.', a folder has no name that could be given to another.
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    _put_back(path)
    others = sorted(child.name for child in path.iterdir() if child.name not in replaceable) if path.exists() else []
    if others:
        raise FileExistsError(
            f"{path} must hold nothing else, since it is replaced as a whole, but holds {', '.join(others[:5])}: name "
            "another folder"
        )
    temporary = path.parent / f"{TEMPORARY}{uuid4().hex}-{path.name}"
    temporary.mkdir()
    try:
        with naming_errors(path):
            yield temporary
            for child in [*temporary.iterdir(), temporary]:
                sync(child)
        # A folder that is not empty cannot be replaced: for a moment there is none, and the older one has another name.
        older = path.parent / f"{TEMPORARY}{uuid4().hex}-{path.name}.older"
        if path.exists():
            os.replace(path, older)
        try:
            os.replace(temporary, path)
        except BaseException:
            if older.exists():
                os.replace(older, path)
            raise
        sync(path.parent)
        shutil.rmtree(older, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _put_back(path: Path) -> None:
    name = re.compile(re.escape(TEMPORARY) + "[0-9a-f]{32}-" + re.escape(f"{path.name}.older"))
    for older in [child for child in path.parent.iterdir() if name.fullmatch(child.name)]:
        if not path.exists():
            os.replace(older, path)
        else:
            shutil.rmtree(older, ignore_errors=True)


def sync(path: Path) -> None:
    """Waits until a file, or the list of files of a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_device(path: Path) -> bool:
    # Where stdout goes to a file, /dev/stdout is a link to it.
    return path.exists() and not path.is_dir() and (not path.is_file() or path.absolute().parent == Path("/dev"))
