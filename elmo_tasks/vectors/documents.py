"""Sentences that belong together: embedded with all others, and put together again."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from elmo_tasks.tokenization import blank_sentences
from elmo_tasks.vectors.pooling import POOLS, pooled

if TYPE_CHECKING:
    from elmo_tasks.vectors.elmo import Elmo

__all__ = ["embed_documents", "embed_groups", "pooled_words"]

_Key = TypeVar("_Key")


def embed_documents(
    elmo: "Elmo",
    documents: Iterable[str | Sequence[str | Sequence[str]]],
    *,
    whole: bool = False,
    pool: str | None = None,
    **kwargs: Any,
) -> Iterator[np.ndarray]:
    """
    The vectors of documents one after another, in their order. The sentences of all documents share batches; in memory
    are those that are read ahead, and the vectors of one document.

    # Parameters

    elmo : `Elmo`
        What embeds them.
    documents : `Iterable[Union[str, Sequence[Union[str, Sequence[str]]]]]`
        Each a text, which spaCy's rules split into sentences; or a list of sentences as `Elmo.embed_iter` takes them.
    whole : `bool`, optional (default = `False`)
        Whether a document is one sequence to the biLM, without boundaries between its sentences. Its words then know
        of all others, and are computed one after another, with memory that grows with the length of the document; the
        public biLMs were trained on running text, but the one that ships on single sentences.
    pool : `Literal["mean", "max", "first-last"]`, optional (default = `None`)
        One vector for the document in place of one for each word: see `pooled`.
    **kwargs
        `layers`, `weights`, `gamma`, `batch_tokens`, `progress` (which counts sentences): see `Elmo.embed_iter`.

    # Returns

    `Iterator[np.ndarray]`
        As `Elmo.embed_iter` returns it for the words of the whole document.

    # Raises

    `ValueError`
        If an argument or a document is none of these.
    """
    if isinstance(documents, str):
        raise ValueError(
            f"documents must be a list of documents, but is the string {documents[:60]!r}: put it into a list"
        )
    if pool is not None and pool not in POOLS:
        raise ValueError(f"pool must be one of {', '.join(map(repr, POOLS))}, or None, but is {pool!r}")

    def groups() -> Iterator[tuple[None, list[list[str]]]]:
        for document in documents:
            given = blank_sentences()(document) if isinstance(document, str) else document
            sentences = [elmo.words(index, sentence) for index, sentence in enumerate(given)]
            yield None, [[word for sentence in sentences for word in sentence]] if whole else sentences

    embedded = embed_groups(elmo, groups(), **kwargs)
    return (array if pool is None else pooled_words(array, pool) for _, array in embedded)


def embed_groups(
    elmo: "Elmo", groups: Iterable[tuple[_Key, list[list[str]]]], **kwargs: Any
) -> Iterator[tuple[_Key, np.ndarray]]:
    """
    # Parameters

    elmo : `Elmo`
        What embeds them.
    groups : `Iterable[Tuple[Key, List[List[str]]]]`
        The sentences of each, as lists of words, and whatever tells one from another. A group may be empty.
    **kwargs
        `layers`, `weights`, `gamma`, `batch_tokens`, `progress`: see `Elmo.embed_iter`.

    # Returns

    `Iterator[Tuple[Key, np.ndarray]]`
        The vectors of all words of each group, of shape `(n_words, dim)`, or `(n_layers, n_words, dim)` with
        `layers="all"`.
    """
    read: deque[tuple[_Key, int]] = deque()

    def sentences() -> Iterator[list[str]]:
        for key, group in groups:
            # An empty group has its place among the vectors too.
            group = group or [[]]
            read.append((key, len(group)))
            yield from group

    vectors = elmo.embed_iter(sentences(), pool=None, output="numpy", **kwargs)

    def joined() -> Iterator[tuple[_Key, np.ndarray]]:
        for first in vectors:
            key, n_sentences = read.popleft()
            yield key, np.concatenate([first, *islice(vectors, n_sentences - 1)], axis=-2)

    return joined()


def pooled_words(vectors: np.ndarray, pool: str) -> np.ndarray:
    """As `pooled`, for an array of shape `(..., n_words, dim)` without padding."""
    mask = torch.ones(vectors.shape[:-1], dtype=torch.bool)
    array: np.ndarray = pooled(torch.from_numpy(vectors), mask, pool).numpy()
    return array
