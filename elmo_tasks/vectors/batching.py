"""
Batches of bounded size from a stream of sentences, and groups of sentences that share batches.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import chain, islice
from typing import TypeVar

import numpy as np
import torch

__all__ = [
    "batches_by_length",
    "chunks",
    "compute_by_length",
    "embed_groups",
    "in_order",
    "one_ahead",
]

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")

# Batches have sentences of similar length only if they are chosen from many sentences.
_BATCHES_AHEAD = 8


def chunks(sentences: Iterable[list[str]], batch_tokens: int) -> Iterator[list[list[str]]]:
    """The sentences in their order, in chunks of about eight batches: see `batches_by_length`."""
    chunk: list[list[str]] = []
    n_tokens = 0
    for sentence in sentences:
        chunk.append(sentence)
        n_tokens += len(sentence) + 2
        if n_tokens >= _BATCHES_AHEAD * batch_tokens:
            yield chunk
            chunk = []
            n_tokens = 0
    if chunk:
        yield chunk


def batches_by_length(sentences: Sequence[Sized], batch_tokens: int) -> Iterator[list[int]]:
    """
    The indices of the sentences of each batch, longest first. A batch has at most `batch_tokens`
    words, including padding and the two boundaries of each sentence; a longer sentence is a batch
    by itself.
    """
    lengths = np.array([len(sentence) + 2 for sentence in sentences], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable").tolist()
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        end = start + max(1, batch_tokens // longest)
        yield order[start:end]
        start = end


def compute_by_length(
    compute: Callable[[list[int]], _Item],
    sentences: Sequence[Sized],
    batch_tokens: int,
    option: str,
) -> Iterator[tuple[list[int], _Item]]:
    """
    The indices of each of `batches_by_length`, and what `compute` returns for them. A batch that
    does not fit in the memory of a GPU is halved and computed again. `option` is the user's name
    for `batch_tokens`.
    """
    if batch_tokens < 1:
        raise ValueError(f"expected at least 1 for {option}, got {batch_tokens}")
    batches = deque(batches_by_length(sentences, batch_tokens))
    while batches:
        rows = batches.popleft()
        try:
            result = compute(rows)
        except torch.OutOfMemoryError as error:
            if len(rows) == 1:
                raise _out_of_memory(error, len(sentences[rows[0]]), option) from None
            middle = len(rows) // 2
            batches.appendleft(rows[middle:])
            batches.appendleft(rows[:middle])
            continue
        yield rows, result


def _out_of_memory(
    error: torch.OutOfMemoryError, n_words: int, option: str
) -> torch.OutOfMemoryError:
    sentence = f"a sentence of {n_words:,} words, which {option} does not split"
    # Without what torch says about its allocator, which does not help here.
    memory, _, _ = str(error).partition(" Including")
    memory = memory.replace(". ", ", ").rstrip(".")
    return torch.OutOfMemoryError(f"{sentence}, does not fit in memory: {memory}")


def one_ahead(items: Iterable[_Item]) -> Iterator[_Item]:
    """The same items, each after the next one has been made."""
    held: deque[_Item] = deque()
    for item in items:
        held.append(item)
        if len(held) > 1:
            yield held.popleft()
    yield from held


def in_order(numbered: Iterable[tuple[int, _Item]]) -> Iterator[_Item]:
    """
    Items with the numbers 0, 1, ... in any order: each as soon as it and all before it have come.
    """
    waiting: dict[int, _Item] = {}
    n_done = 0
    for number, item in numbered:
        waiting[number] = item
        while n_done in waiting:
            yield waiting.pop(n_done)
            n_done += 1


def embed_groups(
    embed: Callable[[Iterable[list[str]]], Iterator[np.ndarray]],
    groups: Iterable[tuple[_Key, list[list[str]]]],
    batch_size: int | None = None,
) -> Iterator[tuple[_Key, np.ndarray]]:
    """
    Yields the key of each group of sentences, and the vectors of all words in the group, of shape
    `(n_words, dim)`, or `(n_layers, n_words, dim)` with `layers="all"`. A group may be empty.
    `embed` is `Elmo.embed_iter`. No more than `batch_size` groups are read before the vectors of
    the first one.
    """
    if not batch_size:
        yield from _embed_together(embed, groups)
        return
    remaining = iter(groups)
    for first_group in remaining:
        yield from _embed_together(embed, chain([first_group], islice(remaining, batch_size - 1)))


def _embed_together(
    embed: Callable[[Iterable[list[str]]], Iterator[np.ndarray]],
    groups: Iterable[tuple[_Key, list[list[str]]]],
) -> Iterator[tuple[_Key, np.ndarray]]:
    """The vectors of groups that may share batches."""
    read: deque[tuple[_Key, int]] = deque()

    def sentences() -> Iterator[list[str]]:
        for key, group in groups:
            # An empty group yields vectors too.
            group = group or [[]]
            read.append((key, len(group)))
            yield from group

    vectors = embed(sentences())
    for first_vectors in vectors:
        key, n_sentences = read.popleft()
        remaining_vectors = islice(vectors, n_sentences - 1)
        yield key, np.concatenate([first_vectors, *remaining_vectors], axis=-2)
