"""
Files: written whole, read line by line, unpacked from archives; and locks. `elmo_tasks.files.archives` has copies of
`unpack` and `compare_checksums`, because neither package needs the other one.
"""

import gzip
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from uuid import uuid4

__all__ = ["atomic_file", "compare_checksums", "locked", "numbered_lines", "remove_leftovers", "unpack"]

_TEMPORARY = re.compile("_tmp-[0-9a-f]{12}-.*")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary path, to write to. At the end of the block its file replaces `path`; after an error it is removed."""
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
    """Removes the temporary files that killed processes have left in a folder, which nobody else writes to now."""
    for file in folder.iterdir():
        if _TEMPORARY.fullmatch(file.name) and file.is_file():
            file.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """
    Locks a path, where a file or folder may exist, until the end of the block or of the process; others get a
    `BlockingIOError`. No effect on network file systems without locks.
    """
    # Here, because `import torch` imports this module.
    from filelock import FileLock, Timeout

    path = path.resolve()
    file = path.with_name(f"_lock-{path.name[-200:]}")
    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BlockingIOError(f"another process is writing {path}: wait for it, or choose another output") from None
    except (OSError, NotImplementedError):
        pass
    try:
        yield
    finally:
        # In this order on POSIX: `filelock` does not take a lock on a removed file. Windows removes it at the release.
        if lock.is_locked:
            with suppress(OSError):
                file.unlink()
        lock.release()


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


def unpack(archive: str | PathLike[str], folder: Path) -> None:
    """
    Unpacks a zip or tar file of folders and files, which may be untrusted. A `ValueError` names a file that is damaged,
    or has anything else in it.
    """
    try:
        # First, because an uncompressed tar file that ends with a zip file also looks like one.
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                # Python 3.11.2, Debian 12's, has no filters.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                for member in tar:
                    # A chain of links can lead outside, past the filter of `tarfile` before June 2025 (CVE-2025-4517).
                    if not (member.isreg() or member.isdir()):
                        raise ValueError(f"expected files and folders only, got {member.name!r:.200}: {archive}")
                    if not Path(folder, member.name).resolve().is_relative_to(folder.resolve()):
                        raise ValueError(f"expected files in its own folder, got {member.name!r:.200}: {archive}")
                    tar.extract(member, folder, set_attrs=False)
                # gzip's checksum follows the last member. What follows the checksum is ignored, as by gunzip.
                try:
                    while tar.fileobj is not None and tar.fileobj.read(2**20):
                        pass
                except gzip.BadGzipFile as error:
                    if not str(error).startswith("Not a gzipped file"):
                        raise
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
