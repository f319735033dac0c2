"""Examples of words with several senses, by language."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["EXAMPLES", "Example", "language_of"]

_FIRST_WORDS = 2000


class Example(NamedTuple):
    """A word in sentences in which it has different senses."""

    word: str
    sentences: Sequence[str]


EXAMPLES: dict[str, Sequence[Example]] = {
    "en": (
        Example("play", ["They play football on Saturdays .", "The play opens at the theatre tonight ."]),
        Example("bank", ["She sat on the bank of the river .", "The bank lends money to farmers ."]),
        Example("gift", ["My watch was a birthday gift .", "He has a gift for music ."]),
    ),
    "ko": (
        Example("눈이", ["밤새 눈이 많이 내렸다 .", "나는 눈이 나빠서 안경을 쓴다 ."]),
        Example("사과를", ["아침에 사과를 깎아 먹었다 .", "그는 잘못을 인정하고 사과를 했다 ."]),
    ),
}
"""By spaCy's code of the language."""


def language_of(words: Path, scripts: frozenset[str] | None = None) -> str:
    """
    # Parameters

    words
        The `vocab.txt` of a biLM.
    scripts
        Those of a named biLM, if it is one: see `NamedBilm`.

    # Returns

    `str`
        "ko" if the biLM has read Hangul, or most of its frequent words are in it; else "en", as if there is no such
        file.
    """
    if scripts is not None and "HANGUL" in scripts:
        return "ko"
    if not words.is_file():
        return "en"
    frequent = [word for _, word in islice(numbered_lines(words), _FIRST_WORDS)]
    n_korean = sum(any("가" <= character <= "힣" for character in word) for word in frequent)
    return "ko" if 2 * n_korean > len(frequent) else "en"
