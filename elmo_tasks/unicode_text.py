"""Deprecated: use `elmo_tasks.text`."""

import unicodedata
from collections import Counter
from functools import lru_cache

from elmo_tasks.text import add_nfc_argument, in_nfc

__all__ = ["add_nfc_argument", "in_nfc", "letters_by_script"]


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
