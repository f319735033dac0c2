"""Vectors of documents: sentences that belong together share batches with all others."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np
import torch

from elmo_tasks.tokenization import blank_sentences, sentences_of_words
from elmo_tasks.vectors.pooling import POOLS, Pool, pooled
from elmo_tasks.vectors.sentences import Sentence, Tokenizer, refuse_no_list, words_of

__all__ = ["Document", "Embed", "embed_documents", "embed_groups", "pooled_words"]

Document = str | Sequence[Sentence]
"""A text, or a list of its sentences."""
Embed = Callable[[Iterable[list[str]]], Iterator[np.ndarray]]
"""`Elmo.embed_iter` with its options, which are `pool=None` and `output="numpy"` here."""

_Key = TypeVar("_Key")


def embed_documents(
    embed: Embed,
    documents: Iterable[Document],
    *,
    whole: bool = False,
    pool: Pool | None = None,
    tokenizer: Tokenizer | None = None,
) -> Iterator[np.ndarray]:
    """
    The vectors of documents one after another, in their order. The sentences of all documents share batches; in memory
    are those that are read ahead, and the vectors of one document.

    # Parameters

    embed
        Embeds the sentences.
    documents, whole, pool
        See `Elmo.embed_documents`.
    tokenizer
        See `words_of`.

    # Returns

    `Iterator[np.ndarray]`
        As `embed` returns it for the words of the whole document.

    # Raises

    `ValueError`
        If an argument or a document is something else.
    """
    refuse_no_list(documents, "documents")
    if pool is not None and pool not in POOLS:
        raise ValueError(f"pool must be one of {', '.join(map(repr, POOLS))}, or None, but is {pool!r}")

    def groups() -> Iterator[tuple[None, list[list[str]]]]:
        for number, document in enumerate(documents):
            if isinstance(document, Mapping):
                raise ValueError(
                    f"a document must be a string, or a list of sentences, but document {number} is a "
                    f"{type(document).__name__}, of which only the names would be read: give row['text'], for example"
                )
            given = _sentences(document, number, tokenizer)
            sentences = [words_of(sentence, index, tokenizer) for index, sentence in enumerate(given)]
            yield None, [[word for sentence in sentences for word in sentence]] if whole else sentences

    embedded = embed_groups(embed, groups())
    return (array if pool is None else pooled_words(array, pool) for _, array in embedded)


def _sentences(document: Document, number: int, tokenizer: Tokenizer | None) -> Sequence[Sentence]:
    if isinstance(document, str) and tokenizer is not None:
        return sentences_of_words(words_of(document, number, tokenizer, "document"))
    try:
        # spaCy takes no subclass of str, as NumPy's arrays of strings have.
        return blank_sentences()(str(document)) if isinstance(document, str) else list(document)
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(
            f"a document must be a string that can be encoded, or a list of sentences, but document {number} is "
            f"{document!r:.80}: {error}"
        ) from None


def embed_groups(embed: Embed, groups: Iterable[tuple[_Key, list[list[str]]]]) -> Iterator[tuple[_Key, np.ndarray]]:
    """
    # Parameters

    embed
        Embeds the sentences.
    groups
        The sentences of each group, as lists of words, and whatever tells one group from another. A group may be empty.

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

    # Called here and not with the first vector: it checks its options.
    vectors = embed(sentences())

    def joined() -> Iterator[tuple[_Key, np.ndarray]]:
        for first in vectors:
            key, n_sentences = read.popleft()
            yield key, np.concatenate([first, *islice(vectors, n_sentences - 1)], axis=-2)

    return joined()


def pooled_words(vectors: np.ndarray, pool: Pool) -> np.ndarray:
    """As `pooled`, for an array of shape `(..., n_words, dim)` without padding."""
    mask = torch.ones(vectors.shape[:-1], dtype=torch.bool)
    array: np.ndarray = pooled(torch.from_numpy(vectors), mask, pool).numpy()
    return array
