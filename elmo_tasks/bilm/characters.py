"""
Words as character ids, in the scheme that every public ELMo was trained with (section 3.1 of the paper and bilm-tf).

A word is its UTF-8 bytes between a begin and an end marker, padded to 50 ids. Ids start at 1: 1 to 256 are the bytes
0 to 255, 257 to 261 the markers below, and 0 is left for positions where there is no word at all.
"""

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch

__all__ = [
    "BEGIN_OF_SENTENCE",
    "END_OF_SENTENCE",
    "MAX_BYTES",
    "MAX_CHARACTERS_PER_TOKEN",
    "N_CHARACTER_IDS",
    "is_cut",
    "leave_cut_words_to_caller",
    "padded_rows",
    "sentences_to_character_ids",
    "word_to_character_ids",
    "words_to_character_ids",
]

MAX_CHARACTERS_PER_TOKEN = 50
"""Ids of one word, with its two markers and the padding."""

N_CHARACTER_IDS = 262
"""The number of different ids, including 0 (no word)."""

MAX_BYTES = MAX_CHARACTERS_PER_TOKEN - 2
"""How many bytes of UTF-8 a word has room for."""

# No character takes more.
_BYTES_A_CHARACTER = 4

BEGIN_OF_SENTENCE = "<S>"
END_OF_SENTENCE = "</S>"

logger = logging.getLogger(__name__)

_BEGIN_OF_SENTENCE_ID = 257
_END_OF_SENTENCE_ID = 258
_BEGIN_OF_WORD_ID = 259
_END_OF_WORD_ID = 260
_PADDING_ID = 261


class _Once:
    """Whether it was said in this process that words are cut."""

    was_said = False


def _say_once_that_words_are_cut(word: str, n_bytes: int) -> None:
    # In a script of three bytes a character, as Hangul, a word has room for 16 of them.
    if not _Once.was_said:
        _Once.was_said = True
        logger.warning(
            "The word %r has %d bytes in UTF-8, and is cut after %d; so are others, which is not said again. Words "
            "that agree in their first %d bytes have one vector.",
            word[:60],
            n_bytes,
            MAX_BYTES,
            MAX_BYTES,
        )


def leave_cut_words_to_caller() -> None:
    """For a caller that counts the words which are cut: nothing more is said here of single ones."""
    _Once.was_said = True


def is_cut(word: str) -> bool:
    """Whether a word has more than `MAX_BYTES` bytes of UTF-8, and is cut after so many."""
    # Nearly all words are short enough in any script, and need not be encoded.
    return len(word) * _BYTES_A_CHARACTER > MAX_BYTES and len(word.encode("utf-8", "ignore")) > MAX_BYTES


def _row(characters: Sequence[int]) -> np.ndarray:
    # Shape: (MAX_CHARACTERS_PER_TOKEN,)
    row = np.full(MAX_CHARACTERS_PER_TOKEN, _PADDING_ID, dtype=np.int64)
    row[0] = _BEGIN_OF_WORD_ID
    row[1 : len(characters) + 1] = characters
    row[len(characters) + 1] = _END_OF_WORD_ID
    # All callers share the array of a word through the cache: it must be read-only.
    row.setflags(write=False)
    return row


_BOUNDARY_ROWS = {
    BEGIN_OF_SENTENCE: _row([_BEGIN_OF_SENTENCE_ID]),
    END_OF_SENTENCE: _row([_END_OF_SENTENCE_ID]),
}


@lru_cache(maxsize=100_000)
def word_to_character_ids(word: str) -> np.ndarray:
    """
    The character ids of a word, cached for the 100,000 most recently used words (about 50 MB): a text repeats most of
    its words.

    # Parameters

    word
        Any string. It is cut after 48 bytes of UTF-8, also in the middle of a character; code points that UTF-8 cannot
        encode (lone surrogates) are dropped; `<S>` and `</S>` are the sentence boundaries.

    # Returns

    `np.ndarray`
        Shape `(50,)`, int64, read-only.
    """
    boundary = _BOUNDARY_ROWS.get(word)
    if boundary is not None:
        return boundary
    utf8 = word.encode("utf-8", "ignore")
    if len(utf8) > MAX_BYTES:
        _say_once_that_words_are_cut(word, len(utf8))
    return _row([byte + 1 for byte in utf8[:MAX_BYTES]])


def words_to_character_ids(words: Sequence[str]) -> np.ndarray:
    """
    The result of `word_to_character_ids` for many words, without a cache: ten times as fast for words that are not in
    the cache, of which a large text has many, and as fast for the others.

    # Parameters

    words
        Any strings.

    # Returns

    `np.ndarray`
        Shape `(n_words, 50)`, int16, a quarter of the size of a model's input.
    """
    n_bytes = MAX_BYTES
    whole = [word.encode("utf-8", "ignore") for word in words]
    for word, encoded in zip(words, whole, strict=True):
        if len(encoded) > n_bytes:
            _say_once_that_words_are_cut(word, len(encoded))
    utf8 = [encoded[:n_bytes] for encoded in whole]
    # Shape: (n_words, 1)
    lengths = np.fromiter(map(len, utf8), dtype=np.int64, count=len(utf8))[:, None]
    # Shape: (n_words, 48)
    padded = np.array(utf8, dtype=f"S{n_bytes}").view(np.uint8).reshape(len(utf8), n_bytes)
    # Shape: (n_words, 50)
    rows = np.full((len(utf8), MAX_CHARACTERS_PER_TOKEN), _PADDING_ID, dtype=np.int16)
    rows[:, 0] = _BEGIN_OF_WORD_ID
    np.add(padded, 1, out=rows[:, 1:-1], where=np.arange(n_bytes) < lengths, dtype=np.int16)
    np.put_along_axis(rows, lengths + 1, _END_OF_WORD_ID, axis=1)
    for boundary, row in _BOUNDARY_ROWS.items():
        if boundary in words:
            rows[[word == boundary for word in words]] = row
    return rows


def sentences_to_character_ids(sentences: Sequence[Sequence[str]]) -> torch.Tensor:
    """
    A batch of character ids, right-padded with zeros.

    # Parameters

    sentences
        Lists of words, without boundary words. A sentence may be empty.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, timesteps, 50)`, int64, on the CPU; `timesteps` is the length of the longest sentence.

    # Raises

    `ValueError`
        If a sentence is a string, which would be split into letters.
    """
    return padded_rows(sentences, word_to_character_ids, MAX_CHARACTERS_PER_TOKEN)


def padded_rows(sentences: Sequence[Sequence[str]], row_of: Callable[[str], np.ndarray], width: int) -> torch.Tensor:
    """
    As `sentences_to_character_ids`, with other ids.

    # Parameters

    sentences
        Lists of words.
    row_of
        The ids of a word, of shape `(width,)`, int64.
    width
        Ids of a word.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, timesteps, width)`, int64, on the CPU.

    # Raises

    `ValueError`
        If a sentence is a string.
    """
    for index, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise ValueError(
                f"a sentence must be a list of words, but sentence {index} is the string {sentence[:60]!r}: "
                "split it into words first"
            )
    timesteps = max(map(len, sentences), default=0)
    # Shape: (batch_size, timesteps, width)
    batch = np.zeros((len(sentences), timesteps, width), dtype=np.int64)
    for row, sentence in zip(batch, sentences, strict=True):
        if sentence:
            row[: len(sentence)] = [row_of(word) for word in sentence]
    return torch.from_numpy(batch)
