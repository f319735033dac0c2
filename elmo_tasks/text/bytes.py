"""The bytes of text files, plain or compressed, and their encoding."""

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

__all__ = ["lines_in_utf8", "opened"]

_DECOMPRESSORS: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


@contextmanager
def opened(path: str | PathLike[str]) -> Iterator[io.BufferedReader]:
    """A file opened for its bytes, decompressed if its name ends with `.gz`, `.xz` or `.bz2`."""
    decompressor = _DECOMPRESSORS.get(Path(path).suffix.lower())
    if decompressor is None:
        with open(path, "rb") as file:
            yield file
        return
    try:
        # The decompressors find the end of each line in Python; the buffer does it in C.
        with io.BufferedReader(decompressor(fspath(path))) as file:
            yield file
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        # Errors of the system have an `errno`; errors of bz2 and gzip do not.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"expected a file that can be decompressed: {fspath(path)}: {error}") from error


def lines_in_utf8(file: io.BufferedReader) -> Iterable[bytes]:
    """
    The lines of a file with their ends, without a byte order mark. UTF-16 is converted to UTF-8; other bytes
    are not checked. A line ends with a line feed, or in a file of old Macs with a carriage return.
    """
    start = file.peek()
    encoding = _encoding_of(start)
    n_returns = start.count(b"\r") - start.count(b"\r\n")
    if encoding == "utf-8" and n_returns <= start.count(b"\n"):
        if start.startswith(codecs.BOM_UTF8):
            file.read(len(codecs.BOM_UTF8))
        return file
    # With an empty `newline`, the ends are those of the file.
    text = io.TextIOWrapper(file, encoding, "surrogateescape" if encoding == "utf-8" else "replace", newline="")
    return (line.removeprefix("\ufeff").encode("utf-8", "surrogateescape") for line in text)


def _encoding_of(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Without a byte order mark, half of the bytes of Latin script in UTF-16 are zero.
    for first, encoding in enumerate(("utf-16-be", "utf-16-le")):
        half = start[first:1000:2]
        if 2 * half.count(0) > len(half):
            return encoding
    return "utf-8"
