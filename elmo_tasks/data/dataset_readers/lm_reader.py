"""Dataset reader of text for a language model: one tokenised sentence per line."""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from glob import glob
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.fields import ArrayField, Field

from elmo_tasks.bilm.characters import (
    BEGIN_OF_SENTENCE,
    END_OF_SENTENCE,
    MAX_CHARACTERS_PER_TOKEN,
    word_to_character_ids,
)
from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE, NO_WORD_ID
from elmo_tasks.files.text_lines import byte_lines, decoded
from elmo_tasks.text import in_nfc

__all__ = ["MAX_WORDS", "LmReader", "LmText", "text_files"]

logger = logging.getLogger(__name__)

MAX_WORDS = 250
"""The length of the longest sentence."""


class LmText:
    """
    The sentences of some files, as lists of words, in the order of the files' names and of their lines. Words are
    separated by white space. Nothing is kept in memory: each `iter()` reads the files again. The first complete pass
    logs how many lines are irregular.

    # Parameters

    path : `Union[str, os.PathLike]`
        A file, a folder (all its files except hidden ones, without subfolders) or a pattern like `news/*.txt.gz` for
        both. Files that end with `.gz`, `.xz` or `.bz2` are decompressed.
    errors : `str`
        `"replace"`: bytes that are not UTF-8 become U+FFFD. `"strict"`: they are an error.
    max_words : `int`
        The length of the longest sentence.
    long_lines : `str`
        `"split"`: a line with more words becomes the fewest sentences that are short enough, all of about the same
        length. `"skip"`: it is skipped.
    nfc : `bool`
        Whether the text is normalised to NFC.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        errors: Literal["strict", "replace"] = "strict",
        max_words: int = MAX_WORDS,
        long_lines: Literal["split", "skip"] = "split",
        nfc: bool = False,
    ) -> None:
        self._path = os.fspath(path)
        self.files = text_files(self._path)
        self._errors = errors
        self._max_words = max_words
        self._long_lines = long_lines
        self._nfc = nfc
        self._is_read = False

    def __iter__(self) -> Iterator[list[str]]:
        counts: Counter[str] = Counter()
        for file in self.files:
            for number, line in byte_lines(file):
                text = decoded(line, file, number) if self._errors == "strict" else line.decode(errors="replace")
                words = (in_nfc(text) if self._nfc else text).split()
                if words and words[0] == BEGIN_OF_SENTENCE and words[-1] == END_OF_SENTENCE:
                    # The biLM adds them, and would learn from two of each.
                    raise ValueError(
                        f"expected a sentence without {BEGIN_OF_SENTENCE} and {END_OF_SENTENCE}: {file}, line {number}"
                    )
                if 0 < len(words) <= self._max_words:
                    counts["sentences"] += 1
                    yield words
                elif not words:
                    counts["empty lines"] += 1
                else:
                    counts[f"lines of more than {self._max_words} words ({self._long_lines})"] += 1
                    if self._long_lines == "split":
                        counts["sentences"] += (n_pieces := -(-len(words) // self._max_words))
                        bounds = [len(words) * piece // n_pieces for piece in range(n_pieces + 1)]
                        yield from (words[first:last] for first, last in pairwise(bounds))
        if not counts["sentences"]:
            raise ValueError(f"expected at least one sentence, one sentence per line: {self._path}")
        if not self._is_read:
            logger.info("%s: %s", self._path, ", ".join(f"{number} {what}" for what, number in counts.items()))
            self._is_read = True


def text_files(path: str) -> list[str]:
    """The files that the path of a text names, sorted: see `LmText`."""
    named = [path] if os.path.exists(path) else glob(path, recursive=True)
    files = {file for each in named for file in _files_of(Path(each))}
    if not files:
        raise ConfigurationError(f"expected a file, a folder with files or a pattern that matches some: {path}")
    return sorted(files)


def _files_of(path: Path) -> list[str]:
    if path.is_file():
        return [str(path)]
    return [str(file) for file in path.iterdir() if file.is_file() and not file.name.startswith(".")]


@DatasetReader.register("elmo_lm")
class LmReader(DatasetReader):
    """
    Reads files with one tokenised sentence per line. Its instances serve the vocabulary and predictions; the data
    loader "elmo_lm" makes the same tensors without them.

    # Parameters

    errors, max_words, long_lines, nfc :
        See `LmText`.
    """

    def __init__(
        self,
        *,
        errors: Literal["strict", "replace"] = "strict",
        max_words: int = MAX_WORDS,
        long_lines: Literal["split", "skip"] = "split",
        nfc: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._options: dict[str, Any] = {"errors": errors, "max_words": max_words, "long_lines": long_lines, "nfc": nfc}

    def text(self, path: str | os.PathLike[str]) -> LmText:
        """The sentences of a file, a folder or a pattern."""
        return LmText(path, **self._options)

    def _read(self, file_path: str) -> Iterator[Instance]:
        return map(self.text_to_instance, self.shard_iterable(self.text(file_path)))

    def text_to_instance(self, words: Sequence[str]) -> Instance:
        """`word_ids`; `apply_token_indexers` adds `character_ids`, which a vocabulary does not need."""
        return Instance({"word_ids": _WordsField(words)})

    def apply_token_indexers(self, instance: Instance) -> None:
        rows = np.array([word_to_character_ids(word) for word in instance["word_ids"].words], dtype=np.int64)
        rows = rows.reshape(-1, MAX_CHARACTERS_PER_TOKEN)
        instance.add_field("character_ids", ArrayField(rows, padding_value=0, dtype=rows.dtype))


class _WordsField(Field[torch.Tensor]):
    """Words as numbers in the vocabulary of the language model, with its own word for unknown ones."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._ids: list[int] = []

    def index(self, vocab: Vocabulary) -> None:
        vocabulary = vocab.get_token_to_index_vocabulary(LM_NAMESPACE)
        self._ids = [vocabulary.get(word, vocabulary[UNKNOWN_WORD]) for word in self.words]

    def get_padding_lengths(self) -> dict[str, int]:
        return {"n_words": len(self.words)}

    def as_tensor(self, padding_lengths: dict[str, int]) -> torch.Tensor:
        # Shape: (timesteps,)
        tensor = torch.full((padding_lengths["n_words"],), NO_WORD_ID)
        tensor[: len(self._ids)] = torch.tensor(self._ids)
        return tensor
