"""Lines of text files, plain or compressed, with errors that name file and line."""

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

__all__ = ["byte_lines", "decoded", "numbered_lines", "opened"]

_DECOMPRESSORS: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def numbered_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """
    The lines of a UTF-8 file without their ends, each with its number, counted from 1. A file that ends with `.gz`,
    `.xz` or `.bz2` is decompressed; a byte order mark is dropped.

    # Raises

    `ValueError`
        If a line is not UTF-8, the file has carriage returns where line feeds belong, or it cannot be decompressed;
        with file and line.
    `OSError`
        If the file cannot be read.
    """
    for number, line in byte_lines(path):
        text = decoded(line, path, number)
        if "\r" in text:
            raise ValueError(
                f"{fspath(path)}, line {number}: lines must end with a line feed, but here is a carriage return alone: "
                "convert the file, with `tr '\\r' '\\n'` for example"
            )
        yield number, text


def byte_lines(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """
    As `numbered_lines`, but not decoded, with their ends, and with carriage returns wherever they are. A line ends with
    a line feed alone, so that its number is the one that any editor shows.

    # Raises

    `ValueError`
        If the file cannot be decompressed; with file and line.
    `OSError`
        If the file cannot be read.
    """
    number = 0
    with opened(path, lambda: f", after line {number}") as file:
        for number, line in enumerate(file, start=1):
            # A file from Windows may begin with a byte order mark, which is no part of its first word.
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def decoded(line: bytes, path: str | PathLike[str], number: int) -> str:
    """
    A line of `byte_lines` as text, without its end.

    # Raises

    `ValueError`
        If it is not UTF-8; with file and line.
    """
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{fspath(path)}, line {number}: the file must be UTF-8, but byte {error.start + 1} of this line is "
            f"{line[error.start]:#04x}: convert it, with iconv for example"
        ) from None


@contextmanager
def opened(path: str | PathLike[str], where: Callable[[], str] = lambda: "") -> Iterator[BinaryIO]:
    """
    Opens a file for its bytes, decompressed if its name ends with `.gz`, `.xz` or `.bz2`.

    # Parameters

    path
        The file.
    where
        The position, for the message that the file is damaged.

    # Raises

    `ValueError`
        Inside the block, if the file cannot be decompressed.
    `OSError`
        If the file cannot be read.
    """
    suffix = Path(path).suffix
    decompressor = _DECOMPRESSORS.get(suffix)
    try:
        # The decompressors find the end of each line in Python; the buffer does it in C.
        with io.BufferedReader(decompressor(fspath(path))) if decompressor else open(path, "rb") as file:
            yield file
    except _DAMAGED as error:
        raise ValueError(
            f"{fspath(path)}{where()}: a file whose name ends with {suffix} must be one that can be decompressed, but "
            f"this one cannot ({error}): fetch or compress it again"
        ) from error
