"""
Normalised text, and the way back to the text that was given.

A text is normalised to Unicode NFC before it is split. A biLM reads words as bytes, so the same
word in a different form, as in macOS file names, would have different vectors.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
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
    if text.isascii() and "\0" not in text:
        return text
    return _UNKNOWN.sub("\ufffd", text)


def first_stretch(text: str, n_characters: int) -> int:
    """
    An offset before the first stretch of more than `n_characters` without a space, or the end of
    the text. Regular expressions for what most texts do not have start here, because this search is
    ten times as fast.
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
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFC", part) for part in _with_few_accents(text))


def _with_few_accents(text: str) -> list[str]:
    """
    The text, cut within more than 30 accents on one letter: sorting them takes a time that grows
    with the square of their number.
    """
    cuts = [0]
    for signs in _SIGNS.finditer(text, first_stretch(text, _MAX_ACCENTS)):
        n_accents = 0
        for offset in range(signs.start(), signs.end()):
            if not unicodedata.combining(text[offset]):
                n_accents = 0
                continue
            n_accents += 1
            if n_accents > _MAX_ACCENTS:
                cuts.append(offset)
                n_accents = 1
    cuts.append(len(text))
    return [text[start:end] for start, end in pairwise(cuts)]


def origins(text: str) -> list[int]:
    """For each character of `in_nfc(text)`, and for its end, the offset in `text`."""
    offsets: list[int] = []
    start = 0
    for run in chain.from_iterable(map(_RUN.findall, _with_few_accents(text))):
        for unit in _units_of(run):
            n_normalised = len(unicodedata.normalize("NFC", unit))
            last = start + len(unit) - 1
            offsets.extend(min(start + number, last) for number in range(n_normalised))
            start += len(unit)
    offsets.append(start)
    return offsets


def _units_of(run: str) -> Iterable[str]:
    if unicodedata.is_normalized("NFC", run):
        return [run]
    return _independent_units(run)


def _independent_units(text: str) -> Iterator[str]:
    """The units of a text that are normalised independently, such as a letter with its accents."""
    unit = ""
    for character in text:
        if not unicodedata.combining(character) and not _combine(unit, character):
            yield unit
            unit = ""
        unit += character
    yield unit


def _combine(unit: str, character: str) -> bool:
    """
    Whether NFC combines a character with the unit before it, as it does the letters of a Korean
    syllable.
    """
    if character.isascii():
        return False
    apart = unicodedata.normalize("NFC", unit) + unicodedata.normalize("NFC", character)
    return unicodedata.normalize("NFC", unit + character) != apart
