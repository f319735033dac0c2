"""
Archives, which are compared with their checksums before anything in them is used. The functions are copies of those in
`allennlp_today.files`: vectors do not need that package, and it does not need this one.
"""

import gzip
import stat
import tarfile
import zipfile
import zlib
from os import PathLike
from pathlib import Path

__all__ = ["compare_checksums", "unpack"]


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
