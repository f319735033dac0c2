"""Text files, plain or compressed, with errors that name file and line."""

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["located", "numbered_lines", "opened"]

_DECOMPRESSORS: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def numbered_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """
    The lines of a UTF-8 file without line ends, each with its number, counted from 1. A file that ends with `.gz`,
    `.xz` or `.bz2` is decompressed; a byte order mark is dropped. Only a line feed ends a line.
    """
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            try:
                text = content.decode()
            except UnicodeDecodeError as error:
                place = f"{fspath(path)}, line {number}, byte {error.start + 1}"
                raise ValueError(f"expected UTF-8, got byte {content[error.start]:#04x}: {place}") from None
            yield number, text.rstrip("\r\n")


@contextmanager
def located(path: str | PathLike[str], place: int | str) -> Iterator[None]:
    """Adds the file, and the line or other place in it, to the errors of a parser."""
    try:
        yield
    except Exception as error:
        what = error if isinstance(error, ValueError) else f"expected a different structure ({error})"
        what = f"expected the key {error}" if isinstance(error, KeyError) else what
        raise ValueError(f"{what}: {fspath(path)}, {place if isinstance(place, str) else f'line {place}'}") from error


@contextmanager
def opened(path: str | PathLike[str]) -> Iterator[BinaryIO]:
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
