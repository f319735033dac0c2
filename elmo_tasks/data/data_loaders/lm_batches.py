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

    def groups_of_epoch(self, epoch: int, n_processes: int) -> Iterator[list[list[str]]]:
        """
        # Returns

        `Iterator[List[List[str]]]`
            Consecutive batches of `of_epoch`, one for each process. If the last ones are fewer, they are skipped with
            `shuffle`; without it, as a text is evaluated, they are cut smaller, so that each process has one.
        """
        batches = self.of_epoch(epoch)
        before: list[list[str]] = []
        while group := list(islice(batches, n_processes)):
            if len(group) < n_processes:
                if self._shuffle:
                    break
                group = _cut_smaller(group, n_processes)
            if len(group) < n_processes:
                # Fewer sentences than processes: one more for some of them.
                for batch, (sentence,) in zip(before, group, strict=False):
                    batch.append(sentence)
                break
            if before:
                yield before
            before = group
        if before:
            yield before

    def count(self, n_processes: int = 1) -> int:
        """The number of groups for some processes, which is the same in every epoch: one pass over the text."""
        if n_processes > 1 and not self._shuffle:
            return sum(1 for _ in self.groups_of_epoch(0, n_processes))
        lengths = map(len, self._text)
        n_batches = 0
        while buffer := list(islice(lengths, self._buffer_sentences)):
            n_batches += len(self._cut(np.sort(buffer)))
        return n_batches // n_processes

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


def _cut_smaller(batches: list[list[str]], number: int) -> list[list[str]]:
    """Halves those with the most sentences until there are so many, or each is one sentence."""
    while len(batches) < number:
        longest = max(range(len(batches)), key=lambda place: len(batches[place]))
        batch = batches[longest]
        if len(batch) == 1:
            break
        half = len(batch) // 2
        batches = [*batches[:longest], batch[:half], batch[half:], *batches[longest + 1 :]]
    return batches
