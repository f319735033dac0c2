"""Batches for a student: labelled texts, and texts with the soft labels of its teachers."""

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np
import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.data.fields import TensorField

from elmo_tasks.files.json_files import json_lines
from elmo_tasks.models.elmo_model import labels_of

__all__ = ["DistilledDataLoader"]


class _SoftLabelReader(DatasetReader):
    """Reads the output of the predictor `elmo_soft_labels` for one teacher, or the average of several teachers."""

    def __init__(self, reader: DatasetReader, files: list[str]) -> None:
        super().__init__()
        self._reader, self._files = reader, files
        self.labels: list[str] = []

    def _read(self, file_path: Any) -> Iterator[Instance]:
        for lines in zip(*map(json_lines, self._files), strict=True):
            outputs = [output for _, output in lines]
            self.labels, teacher = outputs[0]["labels"], np.mean([output["probabilities"] for output in outputs], 0)
            if any(output["labels"] != self.labels for output in outputs):
                raise ValueError(f"the teachers have different labels: {', '.join(self._files)}")
            texts = [value for name, value in outputs[0].items() if name not in ("labels", "probabilities")]
            instance = self._reader.text_to_instance(*texts)
            instance.add_field("teacher", TensorField(torch.tensor(teacher, dtype=torch.float32)))
            yield instance

    def apply_token_indexers(self, instance: Instance) -> None:
        self._reader.apply_token_indexers(instance)


@DataLoader.register("elmo_distilled")
class DistilledDataLoader(DataLoader):
    """
    Alternates between batches of the labelled data and batches with the field `teacher`, from which `ElmoModel`
    computes its loss. An epoch is one pass over the longer of the two; the other is repeated.

    # Parameters

    reader, data_path
        The reader and the file of the labelled data.
    soft_labels : `List[str]`
        Files that the predictor `elmo_soft_labels` wrote for the same texts, one per teacher.
    loader : `Lazy[DataLoader]`
        How both are batched.
    """

    def __init__(self, reader: DatasetReader, data_path: str, soft_labels: list[str], loader: Lazy[DataLoader]) -> None:
        self._teachers = _SoftLabelReader(reader, soft_labels)
        self._labelled = loader.construct(reader=reader, data_path=data_path)
        self._soft = loader.construct(reader=self._teachers, data_path=soft_labels[0])

    def __len__(self) -> int:
        return 2 * max(len(self._labelled), len(self._soft))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        n_pairs = range(max(len(self._labelled), len(self._soft)))
        for _, one, other in zip(n_pairs, _repeated(self._labelled), _repeated(self._soft), strict=False):
            yield one
            yield other

    def iter_instances(self) -> Iterator[Instance]:
        """Only the labelled instances, so the vocabulary is the same as without a teacher."""
        yield from self._labelled.iter_instances()

    def index_with(self, vocab: Vocabulary) -> None:
        for loader in (self._labelled, self._soft):
            loader.index_with(vocab)
        next(iter(self._soft.iter_instances()), None)
        if (labels := labels_of(vocab)) != self._teachers.labels:
            raise ConfigurationError(
                f"the labels of the student ({', '.join(labels)}) and of its teacher "
                f"({', '.join(self._teachers.labels)}) differ, also in their order"
            )

    def set_target_device(self, device: torch.device) -> None:
        for loader in (self._labelled, self._soft):
            loader.set_target_device(device)


def _repeated(loader: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return chain.from_iterable(repeat(loader))
