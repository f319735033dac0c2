"""Batches for training a biLM, fast enough for a GPU."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import Any

import numpy as np
import torch
from allennlp.common.util import is_distributed
from allennlp.data import DataLoader, Instance, TensorDict, Vocabulary

from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD, warn_of_unknown
from elmo_tasks.data.dataset_readers.lm_reader import LmReader
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE, NO_WORD_ID

__all__ = ["LmDataLoader", "batch_tensors"]


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
            lengths = map(len, self._text)
            n_batches = 0
            while buffer := list(islice(lengths, self._buffer_sentences)):
                n_batches += len(_cut(np.sort(buffer), self._max_tokens))
            self._n_batches = n_batches // _rank_and_world_size()[1]
        return self._n_batches

    def __iter__(self) -> Iterator[TensorDict]:
        """The batches of the next epoch: see `batch_tensors`."""
        return next(self._epochs)

    def iter_instances(self) -> Iterator[Instance]:
        return map(self._reader.text_to_instance, self._text)

    def index_with(self, vocab: Vocabulary) -> None:
        self._vocabulary = vocab.get_token_to_index_vocabulary(LM_NAMESPACE)
        words = list(chain.from_iterable(islice(self._text, 1000)))
        warn_of_unknown(sum(word not in self._vocabulary for word in words), len(words))

    def set_target_device(self, device: torch.device) -> None:
        """Has no effect: see `batch_tensors`."""

    def _epoch(self, epoch: int) -> Iterator[TensorDict]:
        rank, world_size = _rank_and_world_size()
        batches = self._batches_of_epoch(epoch)
        while len(group := list(islice(batches, world_size))) == world_size:
            yield batch_tensors(group[rank], self._vocabulary)

    def _batches_of_epoch(self, epoch: int) -> Iterator[list[str]]:
        """
        The batches for all processes. A sentence is one string, with spaces between words, which
        takes an eighth of the memory of a list of words.
        """
        sentences = iter(self._text)
        for index in count():
            buffer = list(map(" ".join, islice(sentences, self._buffer_sentences)))
            if not buffer:
                return
            # Shape: (n_sentences,)
            lengths = np.array([sentence.count(" ") + 1 for sentence in buffer])
            generator = np.random.default_rng([self._seed, epoch, index])
            order = generator.permutation(len(buffer)) if self._shuffle else np.arange(len(buffer))
            order = order[np.argsort(lengths[order], kind="stable")]
            batches = _cut(lengths[order], self._max_tokens)
            for batch in (
                generator.permutation(len(batches)) if self._shuffle else range(len(batches))
            ):
                yield [buffer[sentence] for sentence in order[batches[batch]]]


def _cut(lengths: np.ndarray, max_tokens: int) -> list[slice]:
    """
    Batches of consecutive sentences with at most `max_tokens` words and boundaries, from their
    `lengths`.
    """
    # Shape: (n_sentences + 1,)
    n_tokens_before = np.concatenate([[0], np.cumsum(lengths + 2)])
    batches = []
    first = 0
    while first < len(lengths):
        within = (
            np.searchsorted(n_tokens_before, n_tokens_before[first] + max_tokens, side="right") - 1
        )
        last = max(int(within), first + 1)
        batches.append(slice(first, last))
        first = last
    return batches


def batch_tensors(sentences: Sequence[str], vocabulary: Mapping[str, int]) -> dict[str, Any]:
    """
    `words`, the sentences as `NumberedWords`, and `word_ids`, of shape `(batch_size, timesteps)`,
    -1 where there is no word, from sentences with a space between words. Both are on the CPU: the
    model copies less to a GPU.
    """
    words = BYTES.numbered([sentence.split(" ") for sentence in sentences])
    unknown_id = vocabulary[UNKNOWN_WORD]
    # The last one is that of padding, -1. Shape: (n_distinct + 1,)
    word_ids = np.array([*(vocabulary.get(word, unknown_id) for word in words.words), NO_WORD_ID])
    return {"words": words, "word_ids": torch.from_numpy(word_ids[words.numbers])}


def _rank_and_world_size() -> tuple[int, int]:
    if is_distributed():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1
