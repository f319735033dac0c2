"""
From a mark of a labelling tool to a span of its text.

A mark is right if it is inside the text, on the characters that the tool has saved with it, and
does not overlap another one.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from elmo_tasks.files.lines import is_cell

__all__ = ["Mark", "MarkedSpan", "first_overlap", "longest_spans", "marked_span"]

MarkedSpan = tuple[str, int, int]
"""A label, and the offsets of its first character and of the one after its last."""


@dataclass(frozen=True)
class Mark:
    """
    A label as a tool has saved it.

    # Parameters

    label : `str`
    start, end : `int`
        Offsets in the text, which some tools count in UTF-16.
    marked : `str`, optional
        The marked characters, of tools that save them.
    line : `tuple[Path, int]`, optional
        The file and the line, of tools that write one mark per line.
    """

    label: str
    start: int
    end: int
    marked: str | None = None
    line: tuple[Path, int] | None = None


def marked_span(text: str, mark: Mark) -> MarkedSpan:
    """The span of a mark. Raises `ValueError` if it is not in the text."""
    if not is_cell(mark.label):
        raise ValueError(f"expected a label in one line without tabs, got {mark.label!r:.60}")
    start = mark.start
    end = mark.end
    if mark.marked is not None:
        start, end = _offsets_of(text, mark, mark.marked)
    if not 0 <= start < end <= len(text):
        expected = f"a span of a text with {len(text)} characters"
        raise ValueError(f"expected {expected}, got {mark.start} to {mark.end}")
    return mark.label, start, end


def longest_spans(spans: list[MarkedSpan]) -> list[MarkedSpan]:
    """
    Of spans that overlap, the longest, or the first of equally long ones, as in spaCy. They are in
    the order of the text.
    """
    kept: list[MarkedSpan] = []
    is_taken = bytearray(max((end for _, _, end in spans), default=0))
    for label, start, end in sorted(spans, key=lambda span: (span[1] - span[2], span[1])):
        # Spans that were taken are at least as long as this span, so one that overlaps it contains
        # its first or its last character.
        if not is_taken[start] and not is_taken[end - 1]:
            is_taken[start:end] = b"\1" * (end - start)
            kept.append((label, start, end))
    return sorted(kept, key=lambda span: span[1:])


def first_overlap(spans: list[MarkedSpan]) -> tuple[MarkedSpan, MarkedSpan] | None:
    """The first two spans that overlap, of spans in the order of the text."""
    for span, next_span in pairwise(spans):
        if next_span[1] < span[2]:
            return span, next_span
    return None


def _offsets_of(text: str, mark: Mark, marked: str) -> tuple[int, int]:
    """
    The offsets of the marked characters. Tools for browsers may count UTF-16, in which some
    characters are two, and others count both characters of a Windows line end as one.
    """
    for offset_from in (_from_characters, _from_utf16, _from_single_line_ends):
        start = offset_from(text, mark.start)
        end = offset_from(text, mark.end)
        # Label Studio writes line ends as `\n`, and brat as spaces.
        if text[start:end].split() == marked.replace("\\n", " ").split():
            return start, end
    expected = f"{marked!r:.60} from {mark.start} to {mark.end}"
    raise ValueError(f"expected {expected}, got {text[mark.start : mark.end]!r:.60}")


def _from_characters(text: str, offset: int) -> int:
    return offset


def _from_utf16(text: str, offset: int) -> int:
    return offset - bisect_right(_ends_of_pairs(text), offset)


def _from_single_line_ends(text: str, offset: int) -> int:
    return offset + bisect_left(_windows_line_ends(text), offset)


@lru_cache(maxsize=1)
def _ends_of_pairs(text: str) -> list[int]:
    """In UTF-16, the offsets after the characters that are two there."""
    ends = [match.end() for match in re.finditer("[^\0-\uffff]", text)]
    return [end + number for number, end in enumerate(ends, start=1)]


@lru_cache(maxsize=1)
def _windows_line_ends(text: str) -> list[int]:
    """The offsets of Windows line ends if each is counted as one character."""
    starts = [match.start() for match in re.finditer("\r\n", text)]
    return [start - number for number, start in enumerate(starts)]
