"""
Normalised text, and the way back to the text that was given.

A text is normalised to Unicode NFC before it is split. A biLM reads words as bytes, so the same
word in a different form, as in macOS file names, would have different vectors.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain, pairwise

__all__ = ["first_stretch", "in_nfc", "origins", "readable"]

# NUL, which HDF5 cannot store, and halves of characters, which UTF-8 cannot encode: both mean an
# unknown character.
_UNKNOWN = re.compile("[\0\ud800-\udfff]")
_RUN = re.compile(r"\s+|\S+")
# Accents are neither letters nor white space. Unicode's "stream-safe" texts have at most 30 on one
# letter.
_SIGNS = re.compile(r"[^\w\s]{31,}")
_MAX_ACCENTS = 30


def readable(text: str) -> str:
    """
    A text with U+FFFD for NUL and for lone surrogates, such as half an emoji, and with as many
    characters.
    """
    # spaCy does not accept subclasses of str, such as the items of NumPy's string arrays.
    text = str(text)
    return text if text.isascii() and "\0" not in text else _UNKNOWN.sub("\ufffd", text)


def first_stretch(text: str, n_characters: int) -> int:
    """
    A place before the first stretch of more than `n_characters` without a space, or the end of the
    text. Regular expressions for what most texts do not have begin here, because this search is ten
    times as fast.
    """
    start = 0
    while len(text) - start > n_characters:
        space = text.rfind(" ", start, start + n_characters + 1)
        if space < 0:
            return start
        start = space + 1
    return len(text)


def in_nfc(text: str) -> str:
    """A text in NFC, and `readable`."""
    text = readable(text)
    return (
        text
        if text.isascii()
        else "".join(unicodedata.normalize("NFC", part) for part in _bounded(text))
    )


def _bounded(text: str) -> list[str]:
    """
    The text, cut within more than 30 accents on one letter: sorting them takes a time that grows
    with the square of their number.
    """
    cuts, n_accents = [0], 0
    for signs in _SIGNS.finditer(text, first_stretch(text, _MAX_ACCENTS)):
        for place in range(*signs.span()):
            n_accents = n_accents + 1 if unicodedata.combining(text[place]) else 0
            if n_accents > _MAX_ACCENTS:
                cuts.append(place)
                n_accents = 1
        n_accents = 0
    return [text[start:end] for start, end in pairwise([*cuts, len(text)])]


def origins(text: str) -> list[int]:
    """For each character of `in_nfc(text)`, and for its end, the offset in `text`."""
    found: list[int] = []
    start = 0
    for run in chain.from_iterable(map(_RUN.findall, _bounded(text))):
        for part in [run] if unicodedata.is_normalized("NFC", run) else _parts(run):
            n_normalised = len(unicodedata.normalize("NFC", part))
            found += (start + min(place, len(part) - 1) for place in range(n_normalised))
            start += len(part)
    return [*found, start]


def _parts(text: str) -> Iterator[str]:
    """The parts of a text that are normalised independently, such as a letter with its accents."""
    part = ""
    for character in text:
        if not unicodedata.combining(character) and not _combine(part, character):
            yield part
            part = ""
        part += character
    yield part


def _combine(part: str, character: str) -> bool:
    """
    Whether NFC combines a character with the part before it, as it does the letters of a Korean
    syllable.
    """
    if character.isascii():
        return False
    apart = unicodedata.normalize("NFC", part) + unicodedata.normalize("NFC", character)
    return unicodedata.normalize("NFC", part + character) != apart
