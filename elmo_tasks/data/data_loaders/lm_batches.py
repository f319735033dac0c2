"""Batches of sentences of about the same length, and their order."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from elmo_tasks.data.formats.lm_text import LmText

__all__ = ["LmBatches"]


class LmBatches:
    """
    Sentences of about the same length in batches of a budget of tokens. The sentences of a buffer are shuffled, sorted
    by length and cut into batches, and the batches are shuffled; then comes the next buffer. The order depends only on
    the text, on these parameters and on the number of the epoch: not on a global random generator, and not on the
    process that asks.

    # Parameters

    text : `LmText`
        The sentences.
    max_tokens : `int`
        The most tokens that a batch has. The two boundaries of a sentence count, padding does not. A longer sentence is
        a batch by itself.
    buffer_sentences : `int`
        How many sentences are shuffled together, and are in memory at once.
    shuffle : `bool`
        `False`: the batches of a buffer come from the shortest sentences to the longest.
    seed : `int`
        The seed of the order.
    """

    def __init__(self, text: LmText, *, max_tokens: int, buffer_sentences: int, shuffle: bool, seed: int) -> None:
        self._text = text
        self._max_tokens = max_tokens
        self._buffer_sentences = buffer_sentences
        self._shuffle = shuffle
        self._seed = seed

    def of_epoch(self, epoch: int) -> Iterator[list[str]]:
        """
        # Returns

        `Iterator[List[str]]`
            The batches. A sentence is its words with a space between them, which takes an eighth of the memory of a
            list of words.
        """
        sentences = iter(self._text)
        index = 0
        while buffer := list(map(" ".join, islice(sentences, self._buffer_sentences))):
            # Shape: (n_sentences,)
            lengths = np.array([sentence.count(" ") + 1 for sentence in buffer])
            generator = np.random.default_rng([self._seed, epoch, index])
            order = generator.permutation(len(buffer)) if self._shuffle else np.arange(len(buffer))
            order = order[np.argsort(lengths[order], kind="stable")]
            batches = self._cut(lengths[order])
            for batch in generator.permutation(len(batches)) if self._shuffle else range(len(batches)):
                yield [buffer[sentence] for sentence in order[batches[batch]]]
            index += 1

    def count(self) -> int:
        """The number of batches, which is the same in every epoch: one pass over the text."""
        lengths = map(len, self._text)
        n_batches = 0
        while buffer := list(islice(lengths, self._buffer_sentences)):
            n_batches += len(self._cut(np.sort(buffer)))
        return n_batches

    def _cut(self, lengths: np.ndarray) -> list[slice]:
        # Shape: (n_sentences + 1,)
        n_tokens_before = np.concatenate([[0], np.cumsum(lengths + 2)])
        batches = []
        first = 0
        while first < len(lengths):
            within = np.searchsorted(n_tokens_before, n_tokens_before[first] + self._max_tokens, side="right") - 1
            last = max(int(within), first + 1)
            batches.append(slice(first, last))
            first = last
        return batches
