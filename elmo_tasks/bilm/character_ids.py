"""
Words as character ids, in the scheme that every public ELMo was trained with (section 3.1 of the
paper and bilm-tf).

A word is encoded as its UTF-8 bytes between a begin and an end marker, padded to 50 ids. Ids 1 to
256 are the bytes 0 to 255, 257 to 261 are the markers below, and 0 is for positions without a word.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
import torch

__all__ = [
    "BEGIN_OF_SENTENCE",
    "BYTES",
    "END_OF_SENTENCE",
    "MAX_BYTES",
    "MAX_CHARACTERS_PER_TOKEN",
    "N_CHARACTER_IDS",
    "PADDING_ID",
    "NumberedWords",
    "WordRows",
    "rows_of",
    "word_to_character_ids",
]

# Ids per word, including its two markers and the padding.
MAX_CHARACTERS_PER_TOKEN = 50
# The number of different ids, including 0 (no word).
N_CHARACTER_IDS = 262
# UTF-8 bytes per word; longer words are cut.
MAX_BYTES = MAX_CHARACTERS_PER_TOKEN - 2

BEGIN_OF_SENTENCE = "<S>"
END_OF_SENTENCE = "</S>"

_BEGIN_OF_WORD_ID = 259
_END_OF_WORD_ID = 260
PADDING_ID = 261
# Each boundary is a single character.
_BOUNDARIES = {BEGIN_OF_SENTENCE: [257], END_OF_SENTENCE: [258]}


@lru_cache(maxsize=100_000)
def word_to_character_ids(word: str) -> np.ndarray:
    """
    The character ids of a word, of shape `(50,)`, int64, read-only; cached for the last 100,000
    words (about 50 MB). A word is cut after 48 bytes of UTF-8, even in the middle of a character.
    Code points that UTF-8 cannot encode (lone surrogates) are dropped. `<S>` and `</S>` are the
    sentence boundaries.
    """
    characters = _BOUNDARIES.get(word) or [
        byte + 1 for byte in word.encode("utf-8", "ignore")[:MAX_BYTES]
    ]
    row = np.full(MAX_CHARACTERS_PER_TOKEN, PADDING_ID, dtype=np.int64)
    row[: len(characters) + 2] = [_BEGIN_OF_WORD_ID, *characters, _END_OF_WORD_ID]
    # All callers share the cached array.
    row.setflags(write=False)
    return row


def rows_of(
    words: Sequence[str], row_of: Callable[[str], np.ndarray], boundaries: Sequence[str] = ()
) -> list[np.ndarray]:
    """
    The row of each word. Empty words, which TF-Hub users pad with, and `boundaries` are an error:
    they would change other vectors.
    """
    if isinstance(words, str) or not {"", *boundaries}.isdisjoint(words):
        raise ValueError(
            f"expected a list of words, none of them empty or a boundary, got {words!r:.200}"
        )
    return [row_of(word) for word in words]


@dataclass(frozen=True)
class NumberedWords:
    """
    The words of a batch, with the ids of each distinct word only once.

    # Parameters

    words
        The distinct words.
    rows
        Shape `(n_distinct, width)`: the ids of each of them.
    numbers
        Shape `(batch_size, timesteps)`: for each word of the batch, its index in `words`; -1 for
        padding.
    """

    words: Sequence[str]
    rows: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class WordRows:
    """
    Converts words to the rows of ids that a biLM reads: `row_of` makes the row of a word, of shape
    `(width,)`, int64. The words in `boundaries` begin and end a sentence.
    """

    width: int
    boundaries: tuple[str, str]
    row_of: Callable[[str], np.ndarray]

    def batch(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """
        Converts lists of words, without boundary words, to ids of shape
        `(batch_size, timesteps, width)`, int64, right-padded with zeros. A sentence may be empty.
        Raises `ValueError` if it is a string or a word is empty.
        """
        timesteps = max(map(len, sentences), default=0)
        # Shape: (batch_size, timesteps, width)
        batch = np.zeros((len(sentences), timesteps, self.width), dtype=np.int64)
        for row, sentence in zip(batch, sentences, strict=True):
            if len(sentence):
                row[: len(sentence)] = rows_of(sentence, self.row_of)
        return torch.from_numpy(batch)

    def numbered(self, sentences: Sequence[Sequence[str]]) -> NumberedWords:
        """The same words without repetitions. Raises `ValueError` as `batch` does."""
        words = list(chain.from_iterable(sentences))
        index_of = {word: index for index, word in enumerate(dict.fromkeys(words))}
        if "" in index_of or any(isinstance(sentence, str) for sentence in sentences):
            # Raises the error.
            self.batch(sentences)
        # Shape: (n_distinct, width)
        rows = np.empty((len(index_of), self.width), dtype=np.int64)
        for word, index in index_of.items():
            rows[index] = self.row_of(word)
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        timesteps = max(map(len, sentences), default=0)
        # Shape: (batch_size, timesteps)
        numbers = np.full((len(sentences), timesteps), -1, dtype=np.int64)
        is_word = np.arange(timesteps) < lengths[:, None]
        numbers[is_word] = [index_of[word] for word in words]
        return NumberedWords(list(index_of), rows, numbers)


BYTES = WordRows(
    MAX_CHARACTERS_PER_TOKEN, (BEGIN_OF_SENTENCE, END_OF_SENTENCE), word_to_character_ids
)
"""The rows of the public scheme."""
