"""Files: written whole, read line by line, unpacked from archives; and locks of folders."""

import fcntl
import gzip
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

__all__ = ["atomic_file", "compare_checksums", "locked", "numbered_lines", "remove_leftovers", "unpack"]

_TEMPORARY = re.compile("_tmp-[0-9a-f]{12}-.*")
# Descriptors of locked folders.
_held: set[int] = set()


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary path, to write to. At the end of the block its file replaces `path`; after an error it is removed."""
    temporary = path.with_name(f"_tmp-{uuid4().hex[:12]}-{path.name[-50:]}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(folder: Path) -> None:
    """Removes the temporary files that killed processes have left in a folder, which nobody else writes to now."""
    for file in folder.iterdir():
        if _TEMPORARY.fullmatch(file.name) and file.is_file():
            file.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """
    Locks a folder until the end of the block or of the process; others get a `BlockingIOError`. No effect on network
    file systems without locks.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    _held.add(descriptor)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"another process is writing {folder}: wait for it, or choose another output"
            ) from None
        except OSError:
            pass
        yield
    finally:
        if descriptor in _held:
            _held.remove(descriptor)
            os.close(descriptor)


def _release() -> None:
    """In a forked process, which may outlive the one that has the locks."""
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_release)


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a file in UTF-8, or in UTF-16 with a byte order mark, each with its number, counted from 1."""
    with open(path, "rb") as binary:
        is_utf16 = binary.read(2) in (b"\xff\xfe", b"\xfe\xff")
    with open(path, encoding="utf-16" if is_utf16 else "utf-8-sig", errors="surrogateescape") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.encode()
            except UnicodeEncodeError:
                raise ValueError(f"expected UTF-8: {path}, line {number}") from None
            yield number, line


def unpack(archive: str, folder: Path) -> None:
    """
    Unpacks a zip or tar file of folders and files, which may be untrusted. A `ValueError` names a file that is damaged,
    or has anything else in it.
    """
    try:
        # First, because an uncompressed tar file that ends with a zip file also looks like one.
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                for member in tar:
                    # A chain of links can lead outside, past the filter of `tarfile` before June 2025 (CVE-2025-4517).
                    if not (member.isreg() or member.isdir()):
                        raise ValueError(f"expected files and folders only, got {member.name!r:.200}: {archive}")
                    tar.extract(member, folder, filter="data")
                # gzip's checksum follows the last member.
                while tar.fileobj is not None and tar.fileobj.read(2**20):
                    pass
        else:
            with zipfile.ZipFile(archive) as members:
                for info in members.infolist():
                    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                        raise ValueError(f"expected files and folders only, got {info.filename!r:.200}: {archive}")
                members.extractall(folder)
    except (EOFError, gzip.BadGzipFile, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"expected a whole zip or tar file ({error}): {archive}") from error


def compare_checksums(path: Path) -> None:
    """Raises a `ValueError` if a file of `torch.save` is damaged: `torch.load` ignores its checksums."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as members:
            if (damaged := members.testzip()) is not None:
                raise ValueError(f"expected a whole file, got a damaged {damaged}: {path}")
