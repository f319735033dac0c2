"""The text that a biLM is trained on: one tokenised sentence a line."""

import codecs
import glob
import gzip
import io
import logging
import lzma
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from allennlp.common.checks import ConfigurationError

__all__ = ["LmText"]

logger = logging.getLogger(__name__)

_DECOMPRESSORS: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open}


class LmText:
    """
    The sentences of some files, as lists of words, in the order of the files' names and of their lines. A word is what
    white space parts, so it has none inside. Nothing is kept in memory: each `iter()` reads the files again.

    The first complete pass logs how many lines are not as they should be.

    # Parameters

    path : `Union[str, os.PathLike]`
        A file, a folder (all its files but hidden ones, not those of its folders) or a pattern like `news/*.txt.gz`.
        What ends with `.gz` or `.xz` is decompressed.
    errors : `str`, optional (default = `"strict"`)
        `"replace"`: bytes that are not UTF-8 become U+FFFD. `"strict"`: they are an error.
    max_words : `int`, optional (default = `250`)
        The length of the longest sentence.
    long_lines : `str`, optional (default = `"split"`)
        `"split"`: a line with more words becomes the fewest sentences that are short enough, all of about the same
        length. `"skip"`: it is left out.

    # Raises

    `ConfigurationError`
        If there is no such file, or an option has another value.
    `ValueError`
        While reading: if a line is not UTF-8, a file cannot be decompressed, or there is no sentence at all. The
        message names the file and the line.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        errors: str = "strict",
        max_words: int = 250,
        long_lines: str = "split",
    ) -> None:
        for name, value, choices in (
            ("errors", errors, ("strict", "replace")),
            ("long_lines", long_lines, ("split", "skip")),
        ):
            if value not in choices:
                raise ConfigurationError(f"{name} must be {choices[0]!r} or {choices[1]!r}, but is {value!r}")
        if max_words < 1:
            raise ConfigurationError(f"max_words must be at least 1, but is {max_words}")
        self._path = os.fspath(path)
        self._files = _files(self._path)
        self._replace = errors == "replace"
        self._max_words = max_words
        self._split = long_lines == "split"
        self._is_logged = False

    def __iter__(self) -> Iterator[list[str]]:
        irregular: Counter[str] = Counter()
        n_sentences = 0
        for file in self._files:
            for number, line in _numbered_lines(file):
                try:
                    words = line.decode().split()
                except UnicodeDecodeError as error:
                    if not self._replace:
                        raise ValueError(
                            f"{file}, line {number}: the text must be UTF-8, but byte {error.start + 1} of this line "
                            f"is {line[error.start]:#04x}: convert the file, with iconv for example, or read it with "
                            "errors: 'replace'"
                        ) from None
                    words = line.decode(errors="replace").split()
                    irregular["with bytes replaced that are not UTF-8"] += 1
                if 0 < len(words) <= self._max_words:
                    n_sentences += 1
                    yield words
                elif not words:
                    irregular["empty (skipped)"] += 1
                elif self._split:
                    irregular[f"of more than {self._max_words} words (split)"] += 1
                    pieces = _split_evenly(words, self._max_words)
                    n_sentences += len(pieces)
                    yield from pieces
                else:
                    irregular[f"of more than {self._max_words} words (skipped)"] += 1
        self._finish(n_sentences, irregular)

    def _finish(self, n_sentences: int, irregular: Counter[str]) -> None:
        lines = ", ".join(f"{n} {what}" for what, n in sorted(irregular.items()))
        if not n_sentences:
            raise ValueError(
                f"{self._path} must hold at least one sentence, a sentence a line, but holds none; "
                f"lines: {lines or 'none'}"
            )
        if not self._is_logged:
            logger.info("%s: %d sentences; irregular lines: %s", self._path, n_sentences, lines or "none")
            self._is_logged = True


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        files = [str(file) for file in Path(path).iterdir() if file.is_file() and not file.name.startswith(".")]
    elif os.path.isfile(path):
        files = [path]
    else:
        files = [file for file in glob.glob(path, recursive=True) if os.path.isfile(file)]
    if not files:
        raise ConfigurationError(
            f"the path of a text must be a file, a folder with files or a pattern that matches files, but {path!r} "
            f"is none of them, seen from {os.getcwd()}"
        )
    return sorted(files)


def _numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    decompressor = _DECOMPRESSORS.get(Path(path).suffix)
    number = 0
    try:
        # The decompressors find the end of each line in Python; the buffer does it in C.
        with io.BufferedReader(decompressor(path)) if decompressor else open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                # A file from Windows may begin with a byte order mark, which is no part of its first word.
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path}, after line {number}: the file cannot be decompressed: {error}") from error


def _split_evenly(words: list[str], max_words: int) -> list[list[str]]:
    n_pieces = -(-len(words) // max_words)
    bounds = [len(words) * piece // n_pieces for piece in range(n_pieces + 1)]
    return [words[first:last] for first, last in pairwise(bounds)]
