"""
Words as their Unicode code points, for biLMs with dictionaries of their own (`DictionaryEncoder`).

A word is its code points between a begin and an end marker, padded with zeros. No id is one of the public scheme in
`characters.py`, so that ids of one kind are never taken for those of the other; which characters and words a biLM
knows is its own matter.
"""

from functools import lru_cache

import numpy as np

__all__ = [
    "BEGIN_OF_SENTENCE",
    "END_OF_SENTENCE",
    "N_CODE_POINT_IDS",
    "code_points_to_words",
    "is_cut",
    "word_to_code_points",
]

BEGIN_OF_SENTENCE = "<bos>"
END_OF_SENTENCE = "<eos>"

# Above all ids of the public scheme.
_BEGIN_OF_WORD_ID = 300
_END_OF_WORD_ID = 301
_FIRST_ID = 302

N_CODE_POINT_IDS = _FIRST_ID + 0x110000
"""The number of different ids, including 0 (no word, or padding within one)."""


@lru_cache(maxsize=100_000)
def word_to_code_points(word: str, width: int) -> np.ndarray:
    """
    The ids of a word, cached for the 100,000 most recently used words.

    # Parameters

    word
        Any string. It is cut after `width - 2` code points.
    width
        How many ids there are, with the markers.

    # Returns

    `np.ndarray`
        Shape `(width,)`, int64, read-only.
    """
    row = np.zeros(width, dtype=np.int64)
    ids = [_FIRST_ID + ord(character) for character in word[: width - 2]]
    row[: len(ids) + 2] = [_BEGIN_OF_WORD_ID, *ids, _END_OF_WORD_ID]
    # All callers share the array of a word through the cache: it must be read-only.
    row.setflags(write=False)
    return row


def is_cut(word: str, width: int) -> bool:
    """Whether a word has more than `width - 2` code points, and is cut after so many."""
    return len(word) > width - 2


def code_points_to_words(rows: np.ndarray) -> list[str]:
    """
    # Parameters

    rows
        Shape `(n_words, width)`, as `word_to_code_points` makes them.

    # Returns

    `List[str]`
        The words, as far as they were not cut.

    # Raises

    `ValueError`
        If a row is something else, like the ids of the public scheme.
    """
    words = []
    for row in rows.tolist():
        end = row.index(_END_OF_WORD_ID) if row[0] == _BEGIN_OF_WORD_ID and _END_OF_WORD_ID in row else 0
        if not end or any(not _FIRST_ID <= number < N_CODE_POINT_IDS for number in row[1:end]):
            raise ValueError(
                f"the ids of this biLM must be those of code points between {_BEGIN_OF_WORD_ID} and {_END_OF_WORD_ID}, "
                f"but a word has {row[:4]}...: the token indexer 'elmo' with unicode_characters makes them"
            )
        words.append("".join(chr(number - _FIRST_ID) for number in row[1:end]))
    return words
