"""Text from users."""

import argparse
import string
import unicodedata
from collections.abc import Iterable
from typing import Any

__all__ = ["BOUNDARIES", "TREEBANK_WORDS", "add_nfc_argument", "as_words", "in_nfc"]

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
    """
    Normalises a text, or all texts in lists and dictionary values, to Unicode NFC. A biLM reads words as bytes, so the
    same word in a different form, as in macOS file names, would have different vectors.
    """
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [in_nfc(item) for item in value]
    if isinstance(value, dict):
        return {key: in_nfc(item) for key, item in value.items()}
    return value


def add_nfc_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--no-nfc` to the arguments of a command that reads text."""
    parser.add_argument("--no-nfc", dest="nfc", action="store_false", help="do not normalise the text to NFC")
