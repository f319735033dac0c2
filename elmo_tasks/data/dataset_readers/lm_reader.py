"""Dataset reader for the text of a language model: one tokenised sentence per line."""

import logging
import os
from collections.abc import Iterator, Sequence
from glob import glob
from itertools import chain, pairwise, tee
from pathlib import Path
from typing import Any

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import MetadataField

from elmo_tasks.text import words_of_text
from elmo_tasks.text.formats import text_sentences, warn_if_untokenised

__all__ = ["MAX_WORDS", "LmReader", "LmText", "text_files"]

logger = logging.getLogger(__name__)

MAX_WORDS = 250
"""The length of the longest sentence."""


class LmText:
    """
    The sentences of text files as lists of words, in the order of file names and lines: see
    `text_sentences`. Words are separated by white space. Nothing is kept in memory: each `iter()`
    reads the files again. A line of more than `MAX_WORDS` words is split into as few sentences as
    possible, all of about the same length.

    # Parameters

    path : `Union[str, os.PathLike]`
        A file, a folder (all its files except hidden ones, without subfolders) or a pattern like
        `news/*.txt.gz` for both. Files that end with `.gz`, `.xz` or `.bz2` are decompressed.
    nfc : `bool`
        Whether the text is normalised to NFC.
    letters : `bool`
        Whether each letter is a word, as for proteins. The text may be FASTA.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, nfc: bool = True, letters: bool = False
    ) -> None:
        self._path = os.fspath(path)
        self.files = text_files(self._path)
        self._nfc = nfc
        self._letters = letters

    def __iter__(self) -> Iterator[list[str]]:
        return chain.from_iterable(sentences for _, _, sentences in self.lines())

    def lines(self) -> Iterator[tuple[str, int, list[list[str]]]]:
        """
        The file, the number and the sentences of each line: none if it is blank, several if it is
        split.
        """
        n_sentences = 0
        n_split = 0
        for file in self.files:
            for number, words in self._words_of_lines(file):
                sentences = _short_sentences(words)
                n_sentences += len(sentences)
                n_split += len(sentences) > 1
                yield file, number, sentences
        if not n_sentences:
            raise ValueError(f"expected at least one sentence, one sentence per line: {self._path}")
        logger.info("%s: %d sentences; %d lines were split", self._path, n_sentences, n_split)

    def _words_of_lines(self, file: str) -> Iterator[tuple[int, list[str]]]:
        lines, warned_lines = tee(text_sentences(file, letters=self._letters))
        texts = warn_if_untokenised((text for _, text in warned_lines), file)
        for (number, _), text in zip(lines, texts, strict=True):
            if not isinstance(text, str):
                # A word of CoNLL-U may have spaces.
                text = " ".join(text)
            if self._nfc:
                yield number, words_of_text(text, "whitespace")
            else:
                yield number, text.split()


def _short_sentences(words: list[str]) -> list[list[str]]:
    """The words of a line in sentences of at most `MAX_WORDS` words, and of about one length."""
    if not words:
        return []
    n_sentences = -(-len(words) // MAX_WORDS)
    if n_sentences == 1:
        return [words]
    bounds = [len(words) * number // n_sentences for number in range(n_sentences + 1)]
    return [words[start:end] for start, end in pairwise(bounds)]


def text_files(path: str) -> list[str]:
    """The files that a path refers to, sorted: see `LmText`."""
    if os.path.exists(path):
        names = [path]
    else:
        names = glob(path, recursive=True)
    files: set[str] = set()
    for name in names:
        if os.path.isdir(name):
            files.update(_visible_files(Path(name)))
        elif os.path.isfile(name):
            files.add(str(Path(name)))
    if not files:
        raise ConfigurationError(
            f"expected a file, a folder with files or a pattern that matches some: {path}"
        )
    return sorted(files)


def _visible_files(folder: Path) -> Iterator[str]:
    for file in folder.iterdir():
        if file.is_file() and not file.name.startswith("."):
            yield str(file)


@DatasetReader.register("elmo_lm")
class LmReader(DatasetReader):
    """
    Reads files with one tokenised sentence per line: see `LmText`. Its instances are for the
    vocabulary; the data loader "elmo_lm" makes the tensors.
    """

    def __init__(self, *, nfc: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._nfc = nfc

    def text(self, path: str | os.PathLike[str]) -> LmText:
        """The sentences of a file, a folder or a pattern."""
        return LmText(path, nfc=self._nfc)

    def _read(self, file_path: str) -> Iterator[Instance]:
        return map(self.text_to_instance, self.text(file_path))

    def text_to_instance(self, words: Sequence[str]) -> Instance:
        """`words`, without tensors."""
        return Instance({"words": MetadataField(words)})
