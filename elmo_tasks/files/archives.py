"""Archives, which are compared with their checksums before anything in them is used."""

import gzip
import tarfile
import zipfile
import zlib
from os import PathLike
from pathlib import Path

__all__ = ["unpack", "whole_zip"]


def unpack(archive: str | PathLike[str], folder: Path) -> None:
    """Unpacks a zip or tar file, which may be untrusted. A `ValueError` names a file that is damaged or unsafe."""
    try:
        # First, because an uncompressed tar file that ends with a zip file also looks like one.
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
                # gzip's checksum follows the last member.
                while tar.fileobj is not None and tar.fileobj.read(2**20):
                    pass
        else:
            with zipfile.ZipFile(archive) as members:
                members.extractall(folder)
    except (EOFError, gzip.BadGzipFile, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"expected a whole zip or tar file ({error}): {archive}") from error


def whole_zip(path: Path) -> Path:
    """The path of a file of `torch.save`, after a comparison with its checksums, which `torch.load` ignores."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as members:
            if (damaged := members.testzip()) is not None:
                raise ValueError(f"expected a whole file, got a damaged {damaged}: {path}")
    return path
