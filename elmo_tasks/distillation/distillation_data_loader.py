"""Batches of a student: some labelled texts, and some that its teacher has labelled."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.data.fields import TensorField

from elmo_tasks.distillation.teacher import read_part

__all__ = ["DistillationDataLoader"]


@DataLoader.register("elmo_distilled")
class DistillationDataLoader(DataLoader):
    """
    Each batch has a batch of the labelled data under `labelled`, and one of the teacher's texts under `unlabelled`,
    with its numbers in the field `teacher`. An epoch is one pass over the longer of the two; the other is repeated.

    Registered as a `DataLoader` with name "elmo_distilled". `allennlp elmo-distill` writes it into the config.

    # Parameters

    reader : `DatasetReader`
        The student's.
    data_path : `str`
        The labelled data.
    targets : `str`
        The folder with the parts that `Teachers.label` has written.
    n_texts : `int`
        How many of their texts are read, from the first.
    digest : `str`
        Of what determines the parts. It is not read: a run can only be resumed with the same config.
    values : `str`
        What the field `teacher` has: `probabilities` or `logits`.
    loader : `Lazy[DataLoader]`
        How both are batched.

    # Raises

    `ConfigurationError`
        In an epoch, if one of the two has no batch.
    """

    def __init__(
        self,
        reader: DatasetReader,
        data_path: str,
        targets: str,
        n_texts: int,
        digest: str,
        values: str,
        loader: Lazy[DataLoader],
    ) -> None:
        self._labelled = loader.construct(reader=reader, data_path=data_path)
        self._unlabelled = loader.construct(reader=_TeacherReader(reader, n_texts, values), data_path=targets)

    def __len__(self) -> int:
        return max(len(self._labelled), len(self._unlabelled))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        of_data = _repeated(self._labelled, "the labelled data have")
        of_teacher = _repeated(self._unlabelled, "the texts of the teacher have")
        pairs = zip(of_data, of_teacher, strict=False)
        for _, (labelled, unlabelled) in zip(range(len(self)), pairs, strict=False):
            yield {"labelled": labelled, "unlabelled": unlabelled}

    def iter_instances(self) -> Iterator[Instance]:
        """The labelled instances, from which a vocabulary is made: the student's is that of a training without text."""
        yield from self._labelled.iter_instances()

    def index_with(self, vocab: Vocabulary) -> None:
        """Indexes both."""
        for loader in (self._labelled, self._unlabelled):
            loader.index_with(vocab)

    def set_target_device(self, device: torch.device) -> None:
        """Sets the device of both."""
        for loader in (self._labelled, self._unlabelled):
            loader.set_target_device(device)


class _TeacherReader(DatasetReader):
    """Reads a folder of parts, as the student's reader reads texts without gold."""

    def __init__(self, reader: DatasetReader, n_texts: int, values: str) -> None:
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True)
        self._reader = reader
        self._n_texts = n_texts
        self._values = values

    def _read(self, file_path: str) -> Iterator[Instance]:
        texts = (text for file in sorted(Path(file_path).glob("part-*.npz")) for text in read_part(file))
        for text in self.shard_iterable(islice(texts, self._n_texts)):
            instance = self._reader.text_to_instance(*text.text)
            instance.add_field("teacher", TensorField(torch.from_numpy(getattr(text, self._values).copy())))
            yield instance

    def apply_token_indexers(self, instance: Instance) -> None:
        self._reader.apply_token_indexers(instance)


def _repeated(loader: Iterable[dict[str, Any]], who: str) -> Iterator[dict[str, Any]]:
    while True:
        is_empty = True
        for batch in loader:
            is_empty = False
            yield batch
        if is_empty:
            raise ConfigurationError(
                f"a student needs batches of both kinds, but {who} none: with 'drop_last' there must be as many texts "
                "as in a batch"
            )
