"""SHA-256 checksums next to binary files, in the form that `sha256sum --check` reads."""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmo_tasks.files.atomic_files import atomic_file

__all__ = ["check_file", "checksum_path", "file_with_checksum", "sha256_of", "write_checksum"]

_BYTES_AT_ONCE = 2**20

# Files that this process has hashed: size, time of the last change and inode say whether it is still the same file.
_KNOWN: dict[tuple[str, int, int, int], str] = {}
# A file that was changed later than this before it was hashed could change again within a tick of the file system's
# clock, which can be as coarse as two seconds.
_NANOSECONDS_TO_SETTLE = 3 * 10**9
_LOCK = threading.Lock()


def sha256_of(path: Path) -> str:
    """
    The SHA-256 of a file, as hexadecimal digits. A file that has not changed is hashed once a process, unless it was
    changed just before.

    # Raises

    `OSError`
        If the file cannot be read.
    """
    start = time.time_ns()
    state = path.stat()
    key = (str(path.resolve()), state.st_size, state.st_mtime_ns, state.st_ino)
    with _LOCK:
        known = _KNOWN.get(key)
    if known is not None:
        return known
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BYTES_AT_ONCE):
            digest.update(block)
    if start - state.st_mtime_ns > _NANOSECONDS_TO_SETTLE:
        with _LOCK:
            _KNOWN[key] = digest.hexdigest()
    return digest.hexdigest()


def checksum_path(path: Path) -> Path:
    """Where the checksum of a file is kept: next to it, with `.sha256` after its name."""
    return path.with_name(f"{path.name}.sha256")


def write_checksum(path: Path, content: Path | None = None, *, exclusive: bool = False) -> str:
    """
    Writes the checksum of a file next to it, whole or not at all.

    # Parameters

    path
        The file.
    content
        Where its content is, if it is not there yet. `None`: in it.
    exclusive
        As for `atomic_file`.

    # Returns

    `str`
        The checksum.

    # Raises

    `OSError`
        If the file cannot be read, or the checksum cannot be written.
    """
    digest = sha256_of(content or path)
    with atomic_file(checksum_path(path), exclusive=exclusive) as temporary:
        temporary.write_text(f"{digest}  {path.name}\n", encoding="utf-8")
    return digest


@contextmanager
def file_with_checksum(path: Path) -> Iterator[Path]:
    """
    As `atomic_file`, for a file that one process writes, and writes its checksum too. A process that is killed between
    the two leaves the file without a checksum.
    """
    checksum_path(path).unlink(missing_ok=True)
    with atomic_file(path, exclusive=True) as temporary:
        yield temporary
    write_checksum(path, exclusive=True)


def check_file(path: Path) -> bool:
    """
    Compares a file with the checksum next to it.

    # Returns

    `bool`
        Whether there is a checksum.

    # Raises

    `ValueError`
        If the file is not what it was when its checksum was written, or the checksum is unreadable.
    `OSError`
        If the file cannot be read.
    """
    record = checksum_path(path)
    try:
        words = record.read_bytes()[:4096].decode("ascii").split()
    except FileNotFoundError:
        return False
    except UnicodeDecodeError:
        words = []
    if not words or len(words[0]) != 64 or set(words[0].lower()) - set("0123456789abcdef"):
        raise ValueError(
            f"{record} must hold the SHA-256 of {path.name}, but does not: remove both files and write the second again"
        )
    found = sha256_of(path)
    if found != words[0].lower():
        raise ValueError(
            f"{path} is damaged or was replaced: its SHA-256 is {found[:12]}..., but {record.name} says "
            f"{words[0][:12].lower()}...: restore the file, or remove both and write it again"
        )
    return True
