"""Windows of running text, as bilm-tf trains on them."""

from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import DataLoader, DatasetReader, Instance, TensorDict, Vocabulary

from elmo_tasks.bilm.characters import BEGIN_OF_SENTENCE, END_OF_SENTENCE
from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD
from elmo_tasks.data.data_loaders.unique_word_batch import UniqueWordBatch
from elmo_tasks.data.dataset_readers.lm_reader import LmReader
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE

__all__ = ["LmWindowDataLoader"]


@DataLoader.register("elmo_lm_windows")
class LmWindowDataLoader(DataLoader):
    """
    Batches of windows of text for a biLM that carries its state from batch to batch: each row continues where the same
    row of the previous batch ended. Rows are streams of sentences between their boundaries, forward and backward: the
    same sentences, each read from its end. The tensors have the shapes `(2, n_streams, window + 1, 50)` and
    `(2, n_streams, window + 1)`. The authors' code trains like this; it is here for comparison.

    Registered as a `DataLoader` with name "elmo_lm_windows". For one process.

    # Parameters

    reader : `DatasetReader`
        An `LmReader`.
    data_path : `str`
        A file, a folder or a pattern, see `LmText`.
    n_streams : `int`
        Streams in each direction.
    window : `int`
        Words that are predicted in each row of a batch, at least 2; a row has one word more.
    buffer_sentences : `int`
        How many sentences are shuffled together.
    shuffle : `bool`
        Whether sentences are shuffled.
    seed : `int`
        The seed of the order.

    # Raises

    `ConfigurationError`
        If the reader is another, a value is out of its range, or the training is distributed.
    """

    def __init__(
        self,
        reader: DatasetReader,
        data_path: str,
        *,
        n_streams: int = 128,
        window: int = 20,
        buffer_sentences: int = 100_000,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        if not isinstance(reader, LmReader):
            raise ConfigurationError(
                "the data loader 'elmo_lm_windows' must have a dataset reader of type 'elmo_lm', but has a "
                f"{type(reader).__name__}"
            )
        if reader.max_instances is not None:
            raise ConfigurationError(
                f"the dataset reader of a language model must read the whole text, but has max_instances "
                f"{reader.max_instances}: cut the text off instead"
            )
        # A window of one word may have that of a boundary that follows another, which nobody predicts.
        if min(n_streams, window - 1, buffer_sentences) < 1:
            raise ConfigurationError(
                f"n_streams and buffer_sentences must be at least 1, and window at least 2, but are {n_streams}, "
                f"{buffer_sentences} and {window}"
            )
        if is_distributed():
            raise ConfigurationError(
                "the data loader 'elmo_lm_windows' must be used in one process, since all would have the same windows: "
                "omit 'distributed', or use the data loader 'elmo_lm'"
            )
        self._reader = reader
        self._data_path = data_path
        self._n_streams = n_streams
        self._window = window
        self._buffer_sentences = buffer_sentences
        self._shuffle = shuffle
        self._seed = seed
        self._vocabulary: dict[str, int] = {}
        self._device: torch.device | None = None
        self._epochs = count()

    def __len__(self) -> int:
        # As for any stream: the trainer then shows no remaining time.
        raise TypeError("the number of windows is not known before the end of the text")

    def check_text(self) -> None:
        """
        Reads the text once, which is evaluated only later.

        # Raises

        `ValueError`
            If it cannot be read, or has fewer words than a window of each stream.
        """
        for _ in self._windows(0):
            pass

    def __iter__(self) -> Iterator[TensorDict]:
        for windows in self._windows(next(self._epochs)):
            batch = UniqueWordBatch.from_sentences(windows, self._vocabulary, self._vocabulary[UNKNOWN_WORD])
            tensors = batch.to_tensors(self._device)
            yield {name: tensor.view(2, self._n_streams, *tensor.shape[1:]) for name, tensor in tensors.items()}

    def _windows(self, epoch: int) -> Iterator[list[str]]:
        """The windows of all rows: first those of the forward direction."""
        # For each row, the words that have not been in a window yet.
        rows: list[list[str]] = [[] for _ in range(2 * self._n_streams)]
        sentences = self._sentences(epoch)
        is_empty = True
        while True:
            for row in range(self._n_streams):
                while len(rows[row]) <= self._window:
                    sentence = next(sentences, None)
                    if sentence is None:
                        if is_empty:
                            raise ValueError(
                                f"there must be {self._window} words for each of {self._n_streams} streams, but "
                                f"{self._data_path} has fewer: use more text, or fewer n_streams"
                            )
                        return
                    bounded = [BEGIN_OF_SENTENCE, *sentence, END_OF_SENTENCE]
                    rows[row] += bounded
                    rows[row + self._n_streams] += reversed(bounded)
            is_empty = False
            yield [" ".join(row[: self._window + 1]) for row in rows]
            rows = [row[self._window :] for row in rows]

    def _sentences(self, epoch: int) -> Iterator[list[str]]:
        sentences = iter(self._reader.text(self._data_path))
        index = 0
        while buffer := list(islice(sentences, self._buffer_sentences)):
            generator = np.random.default_rng([self._seed, epoch, index])
            for sentence in generator.permutation(len(buffer)) if self._shuffle else range(len(buffer)):
                yield buffer[sentence]
            index += 1

    def iter_instances(self) -> Iterator[Instance]:
        return iter(self._reader.read(self._data_path))

    def index_with(self, vocab: Vocabulary) -> None:
        self._vocabulary = vocab.get_token_to_index_vocabulary(LM_NAMESPACE)
        if UNKNOWN_WORD not in self._vocabulary:
            raise ConfigurationError(
                f"the vocabulary of the data loader 'elmo_lm_windows' must have the word {UNKNOWN_WORD} in its "
                f"namespace {LM_NAMESPACE!r}, but does not: set the vocabulary of the config to type 'elmo_lm'"
            )

    def set_target_device(self, device: torch.device) -> None:
        self._device = device
