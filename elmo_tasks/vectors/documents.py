"""Sentences from strings or lists of words, and vectors of documents."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np
import torch

from elmo_tasks.text import as_words
from elmo_tasks.tokenization import blank_sentences, blank_tokenizer, sentences_of_words
from elmo_tasks.vectors.layers import Pool, pooled

__all__ = ["Document", "Sentence", "Tokenizer", "embed_groups", "pooled_words", "sentences_of", "words_of"]

Sentence = str | Sequence[str]
"""A sentence as a string, or as a list of its words."""
Document = str | Sequence[Sentence]
"""A text, or a list of its sentences."""
Tokenizer = Callable[[str], Sequence[str]]
"""Splits a string into words."""

_Key = TypeVar("_Key")


def words_of(sentence: Sentence, tokenizer: Tokenizer | None = None) -> list[str]:
    """The words of a sentence; a string is split by the tokenizer, or by spaCy's rules for English."""
    # spaCy does not accept subclasses of str, such as the items of NumPy's string arrays.
    return as_words((tokenizer or blank_tokenizer())(str(sentence)) if isinstance(sentence, str) else sentence)


def sentences_of(document: Document, tokenizer: Tokenizer | None = None) -> list[list[str]]:
    """The words of each sentence of a document. A text is split by the tokenizer and spaCy's rule for sentence ends."""
    if not isinstance(document, str):
        return [words_of(sentence, tokenizer) for sentence in document]
    return sentences_of_words(words_of(document, tokenizer)) if tokenizer else blank_sentences("en")(str(document))


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
