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
"""The Penn Treebank's escaped words, and their form in ordinary text, which biLMs are trained on."""


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
