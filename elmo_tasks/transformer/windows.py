"""Long sentences in overlapping windows."""

from itertools import pairwise
from typing import NamedTuple

__all__ = ["Window", "windows"]


class Window(NamedTuple):
    """
    A part of a sentence that a transformer reads at once.

    # Parameters

    start, end
        The pieces that it has.
    first, last
        The pieces, from `first` to before `last`, whose vectors come from this window: the windows of a sentence share
        them out among themselves.
    """

    start: int
    end: int
    first: int
    last: int


def windows(n_pieces: int, size: int, overlap: int) -> list[Window]:
    """
    The windows of a sentence, each `size` pieces long if there is more than one. Two neighbors have at least `overlap`
    pieces in common, and the border between those that each of them computes is in the middle of these, so that a piece
    has a context on both sides.

    # Parameters

    n_pieces
        Of the sentence.
    size
        The most pieces of a window.
    overlap
        Below `size`.
    """
    last_start = max(0, n_pieces - size)
    # The last one ends with the sentence, which no window leaves.
    starts = [*range(0, last_start, size - overlap), last_start]
    borders = [0, *((start + size + following) // 2 for start, following in pairwise(starts)), n_pieces]
    return [
        Window(start, min(start + size, n_pieces), first, last)
        for start, (first, last) in zip(starts, pairwise(borders), strict=True)
    ]
