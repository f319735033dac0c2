"""Vectors of documents and of other groups of sentences."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
import torch

from elmo_tasks.vectors.layers import Pool, pooled

__all__ = ["embed_groups", "pooled_words"]

_Key = TypeVar("_Key")


def embed_groups(
    embed: Callable[[Iterable[list[str]]], Iterator[np.ndarray]], groups: Iterable[tuple[_Key, list[list[str]]]]
) -> Iterator[tuple[_Key, np.ndarray]]:
    """
    Yields the key of each group of sentences, and the vectors of all words in the group, of shape `(n_words, dim)`, or
    `(n_layers, n_words, dim)` with `layers="all"`. A group may be empty. `embed` is `Elmo.embed_iter`.
    """
    read: deque[tuple[_Key, int]] = deque()

    def sentences() -> Iterator[list[str]]:
        for key, group in groups:
            # An empty group yields vectors too.
            group = group or [[]]
            read.append((key, len(group)))
            yield from group

    vectors = embed(sentences())
    for first in vectors:
        key, n_sentences = read.popleft()
        yield key, np.concatenate([first, *islice(vectors, n_sentences - 1)], axis=-2)


def pooled_words(vectors: np.ndarray, pool: Pool) -> np.ndarray:
    """Like `pooled`, for an array of shape `(..., n_words, dim)` without padding."""
    mask = torch.ones(vectors.shape[:-1], dtype=torch.bool)
    array: np.ndarray = pooled(torch.from_numpy(vectors), mask, pool).numpy()
    return array
