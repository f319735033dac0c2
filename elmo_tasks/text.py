"""Text from users."""

import argparse
import unicodedata
from typing import Any

__all__ = ["TREEBANK_WORDS", "add_nfc_argument", "in_nfc"]

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
"""Words that the Penn Treebank escapes, as ordinary text has them, and the text of a biLM."""


def in_nfc(value: Any) -> Any:
    """
    A text, or all texts in lists and in the values of dictionaries, in Unicode's form NFC. A biLM reads words by their
    bytes, so the same word in a different form, as in macOS's file names, would have different vectors.
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
