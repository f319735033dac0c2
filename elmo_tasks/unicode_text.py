"""Unicode forms and scripts of texts."""

import argparse
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Any

__all__ = ["add_nfc_argument", "in_nfc", "letters_by_script"]


def add_nfc_argument(parser: argparse.ArgumentParser, *, default: bool = True) -> None:
    """Adds `--nfc` and `--no-nfc` to the arguments of a command that reads text."""
    parser.add_argument(
        "--nfc",
        action=argparse.BooleanOptionalAction,
        default=default,
        help="put the text into Unicode's form NFC first (default), as nearly all text is",
    )


def in_nfc(value: Any) -> Any:
    """
    A text in Unicode's form NFC; all texts in lists and in the values of dictionaries. Everything else stays as it is.

    A biLM reads a word by its bytes, so that a word in another form, as macOS has it in the names of files, has other
    vectors.
    """
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [in_nfc(item) for item in value]
    if isinstance(value, dict):
        return {key: in_nfc(item) for key, item in value.items()}
    return value


def letters_by_script(text: str) -> Counter[str]:
    """
    How many letters of each script a text has. A script is named as in the names of its letters: `LATIN`, `HANGUL`,
    `CJK`.
    """
    scripts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            scripts[_script_of(character)] += count
    return scripts


@lru_cache(maxsize=20_000)
def _script_of(letter: str) -> str:
    # The standard library has no property of scripts; the first word of a letter's name is its script.
    return unicodedata.name(letter, "UNNAMED").partition(" ")[0]
