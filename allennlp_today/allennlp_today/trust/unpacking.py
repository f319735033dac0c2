"""
Archives, which are compared with their checksums before anything in them is used.
`elmo_tasks.files.archives` has copies of these functions, because neither package needs the other
one.
"""

import errno
import gzip
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Self

__all__ = ["ForwardMember", "compare_checksums", "expect_regular_file", "is_tar", "plain_members"]
__all__ += ["unpack", "unpack_tar", "unpack_zip"]

_DISK_ERRORS = (
    errno.EACCES,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EMFILE,
    errno.ENOSPC,
    errno.EROFS,
)
# Bytes of what describes the next member of a tar file, such as a long name.
_MAX_HEADER = 2**20


class ForwardMember(tarfile.TarInfo):
    """
    A header of a tar file. Python before August 2025 goes back after a negative size, and reads
    forever (CVE-2025-8194).
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        is_description = member.type in (
            tarfile.GNUTYPE_LONGLINK,
            tarfile.GNUTYPE_LONGNAME,
            tarfile.SOLARIS_XHDTYPE,
            tarfile.XGLTYPE,
            tarfile.XHDTYPE,
        )
        if member.size < 0 or (is_description and member.size > _MAX_HEADER):
            raise tarfile.ReadError(f"a header with a size of {member.size}")
        return member


def unpack(archive: str | PathLike[str], folder: Path) -> None:
    """
    Unpacks a zip or tar file of folders and files, which may be untrusted. A `ValueError` names a
    file that is damaged, or has anything else in it.
    """
    expect_regular_file(archive)
    try:
        # First, because an uncompressed tar file that ends with a zip file also looks like one.
        if is_tar(archive):
            with tarfile.open(archive, tarinfo=ForwardMember) as tar:
                unpack_tar(tar, folder)
        else:
            unpack_zip(archive, folder)
    except ValueError as error:
        raise ValueError(f"{error}: {archive}") from None
    except Exception as error:
        # Others are what a reader of a damaged file happens to raise.
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise
        raise ValueError(f"expected a whole zip or tar file ({error!r:.200}): {archive}") from error


def is_tar(archive: str | PathLike[str]) -> bool:
    """`tarfile.is_tarfile`, which may read a long header that is refused here."""
    try:
        with tarfile.open(archive, tarinfo=ForwardMember):
            return True
    except tarfile.ReadError:
        return False


def unpack_tar(tar: tarfile.TarFile, folder: Path) -> None:
    # Python 3.11.2, Debian 12's, has no filters.
    tar.extraction_filter = getattr(tarfile, "data_filter", None)
    for member in plain_members(tar):
        if not Path(folder, member.name).resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"expected files in its own folder, got {member.name!r:.200}")
        tar.extract(member, folder, set_attrs=False)
    # gzip's checksum follows the last member. What follows the checksum is ignored, as by gunzip.
    try:
        while tar.fileobj is not None and tar.fileobj.read(2**20):
            pass
    except gzip.BadGzipFile as error:
        if not str(error).startswith("Not a gzipped file"):
            raise


def plain_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of a tar file, which are files and folders, one after the other."""
    end = 0
    for member in tar:
        # A chain of links can lead outside, past the filter of `tarfile` before June 2025
        # (CVE-2025-4517), and a sparse file of gigabytes is a few bytes in an archive.
        if not (member.isreg() or member.isdir()) or member.issparse():
            raise ValueError(f"expected files and folders only, got {member.name!r:.200}")
        if member.size < 0 or tar.offset <= end:
            raise ValueError(
                f"expected members in order, got {member.name!r:.200} of size {member.size}"
            )
        end = tar.offset
        yield member


def unpack_zip(archive: str | PathLike[str], folder: Path) -> None:
    with zipfile.ZipFile(archive) as members:
        for info in members.infolist():
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(f"expected files and folders only, got {info.filename!r:.200}")
        members.extractall(folder)


def compare_checksums(path: Path) -> None:
    """
    Raises a `ValueError` if a file of `torch.save` is damaged: `torch.load` ignores its checksums.
    """
    expect_regular_file(path)
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as members:
            damaged = members.testzip()
    except Exception as error:
        raise ValueError(f"expected a whole file ({error!r:.200}): {path}") from error
    if damaged is not None:
        raise ValueError(f"expected a whole file, got a damaged {damaged}: {path}")


def expect_regular_file(path: str | PathLike[str]) -> None:
    """
    Raises a `ValueError` for a pipe, a device or a folder: reading the first two may never end.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"expected a regular file: {path}")
