"""
Numbered lines of text files, plain or compressed, in UTF-8 or UTF-16, and errors that name file and
line.
"""

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

__all__ = [
    "COMPRESSED",
    "as_cell",
    "decoded",
    "is_cell",
    "lines_in_utf8",
    "located",
    "numbered_lines",
    "opened",
    "text_of_file",
]

_DECOMPRESSORS: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
}
COMPRESSED = frozenset(_DECOMPRESSORS)
"""Suffixes of files that `opened` decompresses."""


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
        expected = "a file that can be decompressed"
        raise ValueError(f"expected {expected}: {fspath(path)}: {error}") from error


def lines_in_utf8(file: io.BufferedReader) -> Iterable[bytes]:
    """
    The lines of a file with their ends, without a byte order mark. UTF-16 is converted to UTF-8;
    other bytes are not checked. A line ends with a line feed, or in a file of old Macs with a
    carriage return.
    """
    start = file.peek()
    encoding = _encoding_of(start)
    n_returns = start.count(b"\r") - start.count(b"\r\n")
    if encoding == "utf-8" and n_returns <= start.count(b"\n"):
        if start.startswith(codecs.BOM_UTF8):
            file.read(len(codecs.BOM_UTF8))
        return file
    errors = "surrogateescape" if encoding == "utf-8" else "replace"
    # With an empty `newline`, the ends are those of the file.
    lines = io.TextIOWrapper(file, encoding, errors, newline="")
    return (line.removeprefix("\ufeff").encode("utf-8", "surrogateescape") for line in lines)


def _encoding_of(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8"


def decoded(start: bytes) -> str:
    """The first bytes of a file as text, with U+FFFD for other bytes."""
    return start.decode(_encoding_of(start), "replace").removeprefix("\ufeff")


def numbered_lines(
    path: str | PathLike[str], *, keep_ends: bool = False
) -> Iterator[tuple[int, str]]:
    """
    The lines of a file, each with its number, counted from 1, and without its end if `keep_ends` is
    false. The file is UTF-8, or UTF-16 with a byte order mark, and is decompressed if its name ends
    with `.gz`, `.xz` or `.bz2`: see `lines_in_utf8`.
    """
    with opened(path) as file:
        for number, line in enumerate(lines_in_utf8(file), start=1):
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                byte = f"{line[error.start]:#04x}"
                place = f"{fspath(path)}, line {number}, byte {error.start + 1}"
                raise ValueError(f"expected UTF-8, got byte {byte}: {place}") from None
            if not keep_ends:
                text = text.rstrip("\r\n")
            yield number, text


def text_of_file(path: str | PathLike[str]) -> str:
    """
    The text of a file with its line ends, and with a space instead of a byte order mark of UTF-8:
    offsets in it are those in `open(path, encoding="utf-8", newline="").read()`.
    """
    with opened(path) as file:
        has_mark = file.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8)
    text = "".join(line for _, line in numbered_lines(path, keep_ends=True))
    if has_mark:
        return " " + text
    return text


@contextmanager
def located(path: str | PathLike[str], place: int | str) -> Iterator[None]:
    """
    Adds the file, and the line or other place in it, to the errors of a parser that do not name it.
    It passes on an `ImportError`, which is not about the file.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        if isinstance(error, ValueError) and fspath(path) in str(error):
            raise
        if isinstance(error, ValueError):
            message = str(error)
        elif isinstance(error, KeyError):
            message = f"expected the key {error}"
        else:
            message = f"expected a different structure ({error})"
        if not isinstance(place, str):
            place = f"line {place}"
        raise ValueError(f"{message}: {fspath(path)}, {place}") from error


def is_cell(text: str) -> bool:
    """Whether a text has a visible character, and neither line ends nor tabs."""
    return bool(text.strip()) and "\t" not in text and text.splitlines() == [text]


def as_cell(text: str) -> str:
    """
    A text as a cell of a line with tabs between its cells: without white space, and not empty.
    """
    return "_".join(text.split()) or "_"
