"""Batches for the training of a biLM, fast enough for a GPU."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, count, islice
from typing import Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import DataLoader, DatasetReader, Instance, TensorDict, Vocabulary

from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD
from elmo_tasks.data.data_loaders.lm_batches import LmBatches
from elmo_tasks.data.data_loaders.ordered_workers import interleaved
from elmo_tasks.data.data_loaders.unique_word_batch import UniqueWordBatch
from elmo_tasks.data.dataset_readers.lm_reader import LmReader
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE

__all__ = ["LmDataLoader"]


@DataLoader.register("elmo_lm")
class LmDataLoader(DataLoader):
    """
    Batches of sentences of about the same length, with a budget of tokens. It streams, so the text may be larger than
    the memory.

    Registered as a `DataLoader` with name "elmo_lm". It is fast because it makes arrays for a batch, and no `Instance`
    for a sentence; `iter_instances` makes instances for the vocabulary.

    Each `iter()` is the next epoch. Its order depends on `seed` and on the number of the epoch only, not on the number
    of workers or on global random generators, so `allennlp train --recover`, which skips the batches that are done,
    resumes with exactly those that are not.

    In distributed training each process takes one of as many consecutive batches as there are processes. If the last
    batches of an epoch are fewer, they are skipped; without `shuffle`, as the dev text is read, they are cut smaller
    instead, so that the whole text is evaluated.

    # Parameters

    reader : `DatasetReader`
        An `LmReader`, which defines the sentences.
    data_path : `str`
        A file, a folder or a pattern, see `LmText`.
    max_tokens_per_batch : `int`
        The most tokens that a batch has. The two boundaries of a sentence count, padding does not.
    buffer_sentences : `int`
        How many sentences are shuffled together. Each worker has as many in memory, about 200 bytes each.
    num_workers : `int`
        Processes that make batches. Each reads all of the text, and makes its share of the batches.
    shuffle : `bool`
        `False`: in each buffer from short sentences to long ones.
    seed : `int`
        The seed of the order.
    batches_per_epoch : `int`, optional
        The batches of an epoch of the trainer, which may cross the ends of the text. `None`: one pass over the text.

    # Raises

    `ConfigurationError`
        If the reader is another one, or a number is too low.
    """

    def __init__(
        self,
        reader: DatasetReader,
        data_path: str,
        *,
        max_tokens_per_batch: int,
        buffer_sentences: int = 100_000,
        num_workers: int = 0,
        shuffle: bool = True,
        seed: int = 0,
        batches_per_epoch: Optional[int] = None,
    ) -> None:
        if not isinstance(reader, LmReader):
            raise ConfigurationError(
                f"the data loader 'elmo_lm' must have a dataset reader of type 'elmo_lm', but has a "
                f"{type(reader).__name__}: set the type of the dataset_reader"
            )
        if reader.max_instances is not None:
            raise ConfigurationError(
                f"the dataset reader of a language model must read the whole text, but has max_instances "
                f"{reader.max_instances}: set batches_per_epoch of the data loader, or cut the text off"
            )
        for name, value, lowest in (
            ("max_tokens_per_batch", max_tokens_per_batch, reader.max_words + 2),
            ("buffer_sentences", buffer_sentences, 1),
            ("num_workers", num_workers, 0),
            ("seed", seed, 0),
            ("batches_per_epoch", batches_per_epoch, 1),
        ):
            if value is not None and value < lowest:
                what = (
                    " (max_words of the reader, and two boundaries; 'tokens' in the size of a template)"
                    if name == "max_tokens_per_batch"
                    else ""
                )
                raise ConfigurationError(f"{name} must be at least {lowest}{what}, but is {value}")
        self.batches_per_epoch = batches_per_epoch
        self._reader = reader
        self._data_path = data_path
        self._text = reader.text(data_path)
        self._batches = LmBatches(
            self._text,
            max_tokens=max_tokens_per_batch,
            buffer_sentences=buffer_sentences,
            shuffle=shuffle,
            seed=seed,
        )
        self._n_batches: int | None = None
        self._num_workers = num_workers
        self._vocabulary: dict[str, int] | None = None
        self._device: torch.device | None = None
        self._epochs = map(self._epoch, count())
        self._endless = chain.from_iterable(self._epochs)

    def __len__(self) -> int:
        """
        The exact number of batches. Without `batches_per_epoch`, the first call reads the text once.

        # Raises

        `ValueError`
            If the text cannot be read, or has fewer batches than there are processes.
        """
        return self._in_text() if self.batches_per_epoch is None else self.batches_per_epoch

    def check_text(self) -> None:
        """
        Reads the text once, which is evaluated only later.

        # Raises

        `ValueError`
            If it cannot be read, or has fewer batches than there are processes.
        """
        self._in_text()

    def _in_text(self) -> int:
        if self._n_batches is None:
            self._n_batches = self._batches.count(_rank_and_world_size()[1])
        if not self._n_batches:
            raise self._too_short()
        return self._n_batches

    def __iter__(self) -> Iterator[TensorDict]:
        """`character_ids` and `word_ids`, see `UniqueWordBatch.to_tensors`."""
        if self.batches_per_epoch is None:
            return next(self._epochs)
        return islice(self._endless, self.batches_per_epoch)

    def iter_instances(self) -> Iterator[Instance]:
        # Not `read()`, which would add characters: counting a vocabulary takes a tenth of the time without them.
        return map(self._reader.text_to_instance, self._text)

    def index_with(self, vocab: Vocabulary) -> None:
        vocabulary = vocab.get_token_to_index_vocabulary(LM_NAMESPACE)
        if UNKNOWN_WORD not in vocabulary:
            raise ConfigurationError(
                f"the vocabulary of the data loader 'elmo_lm' must have the word {UNKNOWN_WORD} in its namespace "
                f"{LM_NAMESPACE!r}, but does not: set the vocabulary of the config to type 'elmo_lm'"
            )
        self._vocabulary = vocabulary

    def set_target_device(self, device: torch.device) -> None:
        self._device = device

    def _epoch(self, epoch: int) -> Iterator[TensorDict]:
        if self._vocabulary is None:
            raise ValueError("a data loader must know the vocabulary before it makes batches: call index_with() first")
        rank, world_size = _rank_and_world_size()
        make = partial(_compact_batches, self._batches, epoch, rank, world_size, self._vocabulary)
        is_empty = True
        for batch in interleaved(make, self._num_workers):
            is_empty = False
            yield batch.to_tensors(self._device)
        if is_empty:
            raise self._too_short()

    def _too_short(self) -> ValueError:
        return ValueError(
            f"there must be a batch for each of the {_rank_and_world_size()[1]} processes, but {self._data_path} has "
            "fewer: use more text, smaller batches or fewer processes"
        )


def _rank_and_world_size() -> tuple[int, int]:
    if is_distributed():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _compact_batches(
    batches: LmBatches,
    epoch: int,
    rank: int,
    world_size: int,
    vocabulary: dict[str, int],
    worker: int,
    n_workers: int,
) -> Iterator[UniqueWordBatch]:
    """The batches of one worker of one process."""
    own = (group[rank] for group in batches.groups_of_epoch(epoch, world_size))
    for sentences in islice(own, worker, None, n_workers):
        yield UniqueWordBatch.from_sentences(sentences, vocabulary, vocabulary[UNKNOWN_WORD])
