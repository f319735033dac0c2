"""Batches for training a biLM, fast enough for a GPU."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import Any, TypeVar

import numpy as np
import torch
from allennlp.common.util import is_distributed
from allennlp.data import DataLoader, Instance, TensorDict, Vocabulary

from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD, warn_of_unknown
from elmo_tasks.data.dataset_readers.lm_reader import LmReader
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE, NO_WORD_ID

__all__ = ["LmDataLoader", "batch_tensors"]

_Item = TypeVar("_Item")


@DataLoader.register("elmo_lm")
class LmDataLoader(DataLoader):
    """
    Batches sentences of about the same length, with a limit on tokens. It streams the text, which
    may be larger than memory, and creates arrays per batch instead of an `Instance` per sentence.

    Each `iter()` is the next epoch. Its order depends only on `seed` and the epoch number, not on
    global random generators, so `allennlp train --recover`, which skips completed batches, resumes
    with exactly the remaining ones.

    In distributed training, consecutive batches form groups with one batch for each process; an
    incomplete last group is skipped.

    # Parameters

    data_path : `str`
        A file, a folder or a pattern, see `LmText`.
    max_tokens_per_batch : `int`
        The two boundaries of each sentence count, padding does not. A longer sentence is a batch by
        itself.
    buffer_sentences : `int`
        How many sentences are held in memory and shuffled together.
    shuffle : `bool`
        `False`: each buffer is sorted from short to long sentences.
    """

    def __init__(
        self,
        reader: LmReader,
        data_path: str,
        *,
        max_tokens_per_batch: int,
        buffer_sentences: int = 100_000,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        self._reader = reader
        self._text = reader.text(data_path)
        self._max_tokens = max_tokens_per_batch
        self._buffer_sentences = buffer_sentences
        self._shuffle = shuffle
        self._seed = seed
        self._n_batches: int | None = None
        self._vocabulary: Mapping[str, int] = {}
        self._epochs = map(self._epoch, count())

    def __len__(self) -> int:
        """The exact number of batches. The first call reads the text once."""
        if self._n_batches is None:
            n_batches = 0
            for lengths in _groups(map(len, self._text), self._buffer_sentences):
                n_batches += len(_cut(np.sort(lengths), self._max_tokens))
            _, world_size = _rank_and_world_size()
            self._n_batches = n_batches // world_size
        return self._n_batches

    def __iter__(self) -> Iterator[TensorDict]:
        """The batches of the next epoch: see `batch_tensors`."""
        return next(self._epochs)

    def iter_instances(self) -> Iterator[Instance]:
        return map(self._reader.text_to_instance, self._text)

    def index_with(self, vocab: Vocabulary) -> None:
        self._vocabulary = vocab.get_token_to_index_vocabulary(LM_NAMESPACE)
        words = list(chain.from_iterable(islice(self._text, 1000)))
        n_unknown = sum(word not in self._vocabulary for word in words)
        warn_of_unknown(n_unknown, len(words))

    def set_target_device(self, device: torch.device) -> None:
        """Has no effect: see `batch_tensors`."""

    def _epoch(self, epoch: int) -> Iterator[TensorDict]:
        rank, world_size = _rank_and_world_size()
        for group in _groups(self._batches_of_epoch(epoch), world_size):
            if len(group) == world_size:
                yield batch_tensors(group[rank], self._vocabulary)

    def _batches_of_epoch(self, epoch: int) -> Iterator[list[str]]:
        """
        The batches for all processes. A sentence is one string, with spaces between words, which
        takes an eighth of the memory of a list of words.
        """
        sentences = map(" ".join, self._text)
        for number, buffer in enumerate(_groups(sentences, self._buffer_sentences)):
            generator = np.random.default_rng([self._seed, epoch, number])
            # Shape: (n_sentences,)
            lengths = np.array([sentence.count(" ") + 1 for sentence in buffer])
            order = np.arange(len(buffer))
            if self._shuffle:
                order = generator.permutation(len(buffer))
            order = order[np.argsort(lengths[order], kind="stable")]
            batches = _cut(lengths[order], self._max_tokens)
            if self._shuffle:
                batches = [batches[index] for index in generator.permutation(len(batches))]
            for batch in batches:
                yield [buffer[index] for index in order[batch]]


def _groups(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Consecutive items in lists of `size`, the last of which may be shorter."""
    remaining = iter(items)
    group = list(islice(remaining, size))
    while group:
        yield group
        group = list(islice(remaining, size))


def _cut(lengths: np.ndarray, max_tokens: int) -> list[slice]:
    """
    Batches of consecutive sentences with at most `max_tokens` words and boundaries, from their
    `lengths`.
    """
    # Shape: (n_sentences + 1,)
    n_tokens_before = np.concatenate([[0], np.cumsum(lengths + 2)])
    batches = []
    start = 0
    while start < len(lengths):
        limit = n_tokens_before[start] + max_tokens
        end = int(np.searchsorted(n_tokens_before, limit, side="right")) - 1
        end = max(end, start + 1)
        batches.append(slice(start, end))
        start = end
    return batches


def batch_tensors(sentences: Sequence[str], vocabulary: Mapping[str, int]) -> dict[str, Any]:
    """
    `words`, the sentences as `NumberedWords`, and `word_ids`, of shape `(batch_size, timesteps)`,
    -1 where there is no word, from sentences with a space between words. Both are on the CPU: the
    model copies less to a GPU.
    """
    words = BYTES.numbered([sentence.split(" ") for sentence in sentences])
    unknown_id = vocabulary[UNKNOWN_WORD]
    ids = [vocabulary.get(word, unknown_id) for word in words.words]
    # Padding has the number -1, and so the last id. Shape: (n_distinct + 1,)
    word_ids = np.array([*ids, NO_WORD_ID])
    return {"words": words, "word_ids": torch.from_numpy(word_ids[words.numbers])}


def _rank_and_world_size() -> tuple[int, int]:
    if is_distributed():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1
