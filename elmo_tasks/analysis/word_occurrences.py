"""All occurrences of a word in an index, with their vectors."""

import mmap
import re
from typing import NamedTuple

import numpy as np

from elmo_tasks.analysis.neighbors.files import LINES, SENTENCES, STARTS, Layer
from elmo_tasks.analysis.neighbors.index import NeighborIndex

__all__ = ["Occurrence", "Occurrences", "occurrences_of"]


class Occurrence(NamedTuple):
    """A word in its sentence."""

    words: list[str]
    position: int


class Occurrences(NamedTuple):
    """
    # Parameters

    found
        In the order of the text.
    vectors
        Their vectors, of length 1: shape `(n_found, dim)`, float32.
    n_all
        How many there are in the index; more than were asked for are not read.
    """

    found: list[Occurrence]
    vectors: np.ndarray
    n_all: int


def occurrences_of(index: NeighborIndex, word: str, limit: int, layer: Layer | None = None) -> Occurrences:
    """
    # Parameters

    index
        An index.
    word
        As it is written, in lower case, in upper case, or with a capital first letter.
    limit
        The most occurrences. If there are more, those are taken that are evenly spread over the text.
    layer
        The layer, of an index that has several.

    # Raises

    `ValueError`
        If the word is empty or has white space in it, or a sentence is not as it was indexed.
    """
    if word.split() != [word]:
        raise ValueError(f"a word must be without white space, and not empty, but is {word!r:.100}")
    spellings = {word, word.lower(), word.upper(), word.capitalize()}
    pattern = "|".join(re.escape(spelling) for spelling in sorted(spellings)).encode()
    with open(index.folder / SENTENCES, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        # Words have white space around them, and none inside.
        places = [found.start() for found in re.finditer(rb"(?<!\S)(?:" + pattern + rb")(?!\S)", text)]
        n_all = len(places)
        if n_all > limit:
            places = [places[number * n_all // limit] for number in range(limit)]
        starts, lines = (np.load(index.folder / name, mmap_mode="r") for name in (STARTS, LINES))
        numbers = (np.searchsorted(lines, places, side="right") - 1).tolist()
        positions = [len(text[lines[number] : place].split()) for number, place in zip(numbers, places, strict=True)]
    rows = [int(starts[number]) + position for number, position in zip(numbers, positions, strict=True)]
    # Shape: (n_found, dim)
    vectors = index.vectors(layer)[rows].astype(np.float32).reshape(len(rows), index.dim)
    # An index of int8 has other lengths.
    vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.finfo(np.float32).tiny)
    found = [Occurrence(index.sentence(number), position) for number, position in zip(numbers, positions, strict=True)]
    return Occurrences(found, vectors, n_all)
