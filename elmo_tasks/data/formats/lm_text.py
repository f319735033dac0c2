"""The training text of a biLM: one tokenised sentence a line."""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm.characters import BEGIN_OF_SENTENCE, END_OF_SENTENCE
from elmo_tasks.files.folders import matches
from elmo_tasks.files.text_lines import byte_lines, checked_text
from elmo_tasks.unicode_text import in_nfc

__all__ = ["MAX_WORDS", "LmText", "text_files"]

logger = logging.getLogger(__name__)

MAX_WORDS = 250
"""The length of the longest sentence, unless another one is asked for."""


class LmText:
    """
    The sentences of some files, as lists of words, in the order of the files' names and of their lines. Words are
    separated by white space, and have none inside. Nothing is kept in memory: each `iter()` reads the files again.

    The first complete pass logs how many lines are irregular; then `irregular` has their numbers, by what they are.

    # Parameters

    path : `Union[str, os.PathLike]`
        A file, a folder (all its files but hidden ones, not those of its folders) or a pattern like `news/*.txt.gz` for
        both. Files that end with `.gz` or `.xz` are decompressed.
    errors : `str`
        `"replace"`: bytes that are not UTF-8 become U+FFFD. `"strict"`: they are an error.
    max_words : `int`
        The length of the longest sentence.
    long_lines : `str`
        `"split"`: a line with more words becomes the fewest sentences that are short enough, all of about the same
        length. `"skip"`: it is skipped.
    nfc : `bool`
        Whether the text is put into Unicode's form NFC.

    # Raises

    `ConfigurationError`
        If there is no such file, or an option has an unknown value.
    `ValueError`
        While reading: if a line is not UTF-8, has NUL or a carriage return, is longer than 16 MiB, or stands between
        the boundaries `<S>` and `</S>`; if a file cannot be decompressed, or there is no sentence at all. The message
        names the file and the line.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        errors: str = "strict",
        max_words: int = MAX_WORDS,
        long_lines: str = "split",
        nfc: bool = False,
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
        self.files = text_files(self._path)
        self._replace = errors == "replace"
        self._max_words = max_words
        self._split = long_lines == "split"
        self._nfc = nfc
        self.irregular: Counter[str] | None = None

    def __iter__(self) -> Iterator[list[str]]:
        irregular: Counter[str] = Counter()
        n_sentences = 0
        for file in self.files:
            for number, line in byte_lines(file):
                try:
                    text = line.decode()
                except UnicodeDecodeError:
                    if not self._replace:
                        try:
                            checked_text(line, file, number)
                        except ValueError as error:
                            raise ValueError(
                                f"{error}, or, for a training, set errors: 'replace' of the dataset reader"
                            ) from None
                    text = line.decode(errors="replace")
                    irregular["with bytes replaced that are not UTF-8"] += 1
                # Few lines have either, and a call for each line costs more than to look.
                if "\r" in text or "\0" in text:
                    text = checked_text(text.encode(), file, number)
                words = (in_nfc(text) if self._nfc else text).split()
                if words and words[0] == BEGIN_OF_SENTENCE and words[-1] == END_OF_SENTENCE:
                    raise ValueError(
                        f"{file}:{number}: a sentence must not stand between the boundaries {BEGIN_OF_SENTENCE} and "
                        f"{END_OF_SENTENCE}, which the biLM adds: remove them from the text"
                    )
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
                f"{self._path} must hold at least one sentence, a sentence a line, but "
                + (f"has no other lines than {lines}" if lines else "is empty")
            )
        if self.irregular is None:
            logger.info("%s: %d sentences; irregular lines: %s", self._path, n_sentences, lines or "none")
            self.irregular = irregular


def text_files(path: str) -> list[str]:
    """
    The files that the path of a text names, sorted: see `LmText`.

    # Raises

    `ConfigurationError`
        If there is none.
    """
    named = [path] if os.path.exists(path) else matches(path)
    files = {file for each in named for file in _files_of(each)}
    if not files:
        raise ConfigurationError(
            f"the path of a text must be a file, a folder with files or a pattern that matches files, but nothing is "
            f"found at {path!r}, as seen from {os.getcwd()}"
        )
    return sorted(files)


def _files_of(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path] if os.path.isfile(path) else []
    return [str(file) for file in Path(path).iterdir() if file.is_file() and not file.name.startswith(".")]


def _split_evenly(words: list[str], max_words: int) -> list[list[str]]:
    n_pieces = -(-len(words) // max_words)
    bounds = [len(words) * piece // n_pieces for piece in range(n_pieces + 1)]
    return [words[first:last] for first, last in pairwise(bounds)]
