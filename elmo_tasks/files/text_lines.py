"""Lines of text files, plain or compressed, with errors that name file and line."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["MAX_LINE_BYTES", "byte_lines", "checked_text", "decoded", "numbered_lines", "opened", "whole_text"]

# A few kilobytes of a compressed file may be a line that fills the memory. This is the text of a dozen novels.
MAX_LINE_BYTES = 16 * 2**20
# For the same reason, of a compressed file that is read as a whole.
_MAX_FILE_BYTES = 2**30
_DECOMPRESSORS: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def numbered_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """
    The lines of a UTF-8 file without their ends, each with its number, counted from 1. A file that ends with `.gz`,
    `.xz` or `.bz2` is decompressed; a byte order mark is dropped.

    # Raises

    `ValueError`
        See `byte_lines` and `checked_text`; with file and line.
    `OSError`
        If the file cannot be read.
    """
    for number, line in byte_lines(path):
        yield number, checked_text(line, path, number)


def byte_lines(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """
    As `numbered_lines`, but not decoded, with their ends, and with carriage returns wherever they are. A line ends with
    a line feed alone, so that its number is the one that any editor shows.

    # Raises

    `ValueError`
        If the path is not a file, the file cannot be decompressed, or a line is longer than `MAX_LINE_BYTES`; with file
        and line.
    `OSError`
        If the file cannot be read.
    """
    number = 0
    with opened(path, lambda: f", after line {number}") as file:
        lines = iter(partial(file.readline, MAX_LINE_BYTES), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) == MAX_LINE_BYTES:
                raise ValueError(
                    f"{fspath(path)}, line {number}: a line must be shorter than {MAX_LINE_BYTES // 2**20} MiB, but "
                    "this one is not: end each sentence with a line feed"
                )
            # A file from Windows may begin with a byte order mark, which is no part of its first word.
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def checked_text(line: bytes, path: str | PathLike[str], number: int) -> str:
    """
    A line of `byte_lines` as text, without its end, if it is one line of text.

    # Raises

    `ValueError`
        If it is not UTF-8, or has a carriage return or the character NUL; with file and line.
    """
    text = decoded(line, path, number)
    if "\0" in text:
        # ASCII in UTF-16 is valid UTF-8, with this character before or after each other.
        raise ValueError(
            f"{fspath(path)}, line {number}: a line must not have the character NUL, but this one has it after "
            f"{text.index(chr(0))} others: convert the file if it is UTF-16, with iconv for example, or remove them "
            "with `tr -d '\\000'`"
        )
    if "\r" in text:
        raise ValueError(
            f"{fspath(path)}, line {number}: lines must end with a line feed, but here is a carriage return alone: "
            "convert the file, with `tr '\\r' '\\n'` for example"
        )
    return text


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


def whole_text(path: str | PathLike[str]) -> str:
    """
    The text of a UTF-8 file, for formats that are not read line by line. It is decompressed as in `numbered_lines`, and
    a byte order mark is dropped.

    # Raises

    `ValueError`
        If the file is not UTF-8, has the character NUL, cannot be decompressed, or is more than 1 GiB when it is; with
        the file, and with the line where there is one.
    `OSError`
        If the file cannot be read.
    """
    with opened(path) as file:
        # A plain file is as large as it is: only a compressed one can be larger than it looks.
        content = file.read(_MAX_FILE_BYTES + 1 if Path(path).suffix in _DECOMPRESSORS else -1)
        if Path(path).suffix in _DECOMPRESSORS and len(content) > _MAX_FILE_BYTES:
            raise ValueError(
                f"{fspath(path)} must be at most {_MAX_FILE_BYTES // 2**30} GiB when it is decompressed, but is more: "
                "decompress it"
            )
    content = content.removeprefix(codecs.BOM_UTF8)
    # Line by line only to find the place of what the whole shows to be wrong.
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        for number, line in enumerate(content.split(b"\n"), start=1):
            checked_text(line.replace(b"\r", b" "), path, number)
    return text


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
        If the path is a pipe, a device or a socket; inside the block, if the file cannot be decompressed.
    `OSError`
        If the file cannot be read.
    """
    mode = os.stat(path).st_mode
    # The system's own error names a folder.
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(
            f"{fspath(path)} must be a file, which can be read more than once, but is a pipe, a device or a socket: "
            "write its content to a file"
        )
    suffix = Path(path).suffix.lower()
    decompressor = _DECOMPRESSORS.get(suffix)
    try:
        # The decompressors find the end of each line in Python; the buffer does it in C.
        with io.BufferedReader(decompressor(fspath(path))) if decompressor else open(path, "rb") as file:
            yield file
    except (*_DAMAGED, OSError) as error:
        # bz2 has no error of its own; one of the system has a number.
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile) and error.errno is not None:
            raise
        raise ValueError(
            f"{fspath(path)}{where()}: a file whose name ends with {suffix} must be one that can be decompressed, but "
            f"this one cannot ({error}): fetch or compress it again"
        ) from error
