"""Text from users."""

import string
import unicodedata
from collections.abc import Iterable
from typing import Any

__all__ = ["BOUNDARIES", "TREEBANK_WORDS", "as_words", "in_nfc"]

BOUNDARIES = frozenset(["<S>", "</S>"])
"""The boundaries that a biLM adds to each sentence."""

TREEBANK_WORDS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}
"""The Penn Treebank's escaped words, and their form in ordinary text, which biLMs are trained on."""


def as_words(words: Any) -> list[str]:
    """The words of a sentence from a user: strings that are neither white space nor boundaries. Others are an error."""
    are_words = isinstance(words, Iterable) and not isinstance(words, str | bytes)
    found = list(words) if are_words else [words]
    wrong = [
        word for word in found if not isinstance(word, str) or not word.strip(string.whitespace) or word in BOUNDARIES
    ]
    if wrong or not are_words:
        raise ValueError(f"expected a list of words, got {(wrong or found)[0]!r:.60} in {words!r:.200}")
    return found


def in_nfc(value: Any) -> Any:
    """Normalises a text, or the texts among the values of a dictionary, to Unicode NFC: see `tokenization`."""
    if isinstance(value, dict):
        return {key: in_nfc(item) for key, item in value.items()}
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value
