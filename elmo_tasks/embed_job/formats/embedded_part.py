"""Vectors of the lines of one part."""

from dataclasses import dataclass

import numpy as np

__all__ = ["EmbeddedPart"]


@dataclass(frozen=True)
class EmbeddedPart:
    """
    # Parameters

    first
        The index of the first line in the text, from 0.
    sentences
        The words of each line, with one space between them.
    vectors
        The vectors of each line, of one type.
    """

    first: int
    sentences: list[str]
    vectors: list[np.ndarray]
