"""Numbered lines of text files, and errors that name file and line."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath

from elmo_tasks.text.bytes import lines_in_utf8, opened

__all__ = ["located", "numbered_lines", "text_of_file"]


def numbered_lines(path: str | PathLike[str], *, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    """
    The lines of a file, each with its number, counted from 1, and without its end if `keep_ends` is false. The file is
    UTF-8, or UTF-16 with a byte order mark, and is decompressed if its name ends with `.gz`, `.xz` or `.bz2`: see
    `lines_in_utf8`.
    """
    with opened(path) as file:
        for number, line in enumerate(lines_in_utf8(file), start=1):
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                place = f"{fspath(path)}, line {number}, byte {error.start + 1}"
                raise ValueError(f"expected UTF-8, got byte {line[error.start]:#04x}: {place}") from None
            yield number, text if keep_ends else text.rstrip("\r\n")


def text_of_file(path: str | PathLike[str]) -> str:
    """
    The text of a file with its line ends, and with a space instead of a byte order mark of UTF-8: offsets in it are
    those in `open(path, encoding="utf-8", newline="").read()`.
    """
    with opened(path) as file:
        has_mark = file.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8)
    return " " * has_mark + "".join(line for _, line in numbered_lines(path, keep_ends=True))


@contextmanager
def located(path: str | PathLike[str], place: int | str) -> Iterator[None]:
    """Adds the file, and the line or other place in it, to the errors of a parser."""
    try:
        yield
    except Exception as error:
        what = error if isinstance(error, ValueError) else f"expected a different structure ({error})"
        what = f"expected the key {error}" if isinstance(error, KeyError) else what
        raise ValueError(f"{what}: {fspath(path)}, {place if isinstance(place, str) else f'line {place}'}") from error
