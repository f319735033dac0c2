"""What teachers say of unlabelled texts, in files: computed once, and resumed where it was interrupted."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from allennlp.common.util import lazy_groups_of
from allennlp.data import Batch, DatasetReader
from allennlp.models import Model, load_archive
from allennlp.nn.util import move_to_device

from elmo_tasks.distillation.soft_labels import check_model, soft_labels
from elmo_tasks.distillation.texts import Text, read_texts
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.progress import progress_bar

__all__ = ["LabelledText", "Teachers", "is_of_pairs", "read_part"]

_FORMAT = 1
_TEXTS_PER_PART = 1024
# A RuntimeError is a member that says to be encrypted, or compressed in a way that is not known.
_DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class LabelledText:
    """
    # Parameters

    text
        See `read_texts`.
    logits, probabilities
        Of each label, in the teacher's order. Shape `(n_labels,)`, or of a tagger `(n_words, n_labels)`.
    """

    text: Text
    logits: np.ndarray
    probabilities: np.ndarray


class Teachers:
    """
    One model, or several whose probabilities and logits are averaged.

    # Parameters

    archives
        Their archives, of the same task.
    device
        Where they compute.

    # Raises

    `ValueError`
        If a model is of another kind, or has other labels than the first, or is there twice.
    """

    def __init__(self, archives: Sequence[Path], device: torch.device) -> None:
        self._digests = [sha256_of(path) for path in archives]
        for number, digest in enumerate(self._digests):
            if (first := self._digests.index(digest)) < number:
                raise ValueError(
                    f"teachers must be different models, but {archives[number]} is the same as {archives[first]}, and "
                    "would count twice: name it once"
                )
        loaded = [load_archive(str(path)) for path in archives]
        self._models: list[tuple[Model, DatasetReader]] = []
        # The number that each model has for each label of the first.
        self._orders: list[list[int]] = []
        self.labels = _labels(loaded[0].model)
        for path, archive in zip(archives, loaded, strict=True):
            check_model(archive.model)
            own = _labels(archive.model)
            if sorted(own) != sorted(self.labels):
                raise ValueError(
                    f"teachers must have the same labels, but {archives[0]} has {', '.join(sorted(self.labels))}, and "
                    f"{path} has {', '.join(sorted(own))}"
                )
            self._orders.append([own.index(label) for label in self.labels])
            self._models.append((archive.model.eval().to(device), archive.validation_dataset_reader))
        self._device = device
        self.kind: type[Model] = type(loaded[0].model)
        self.is_of_pairs = is_of_pairs(self.kind.default_predictor)

    def label(
        self, path: Path, folder: Path, *, temperature: float, most: int | None = None, batch_size: int = 64
    ) -> tuple[int, str]:
        """
        Writes what they say of the texts of a file. A part that is there, of the same texts, teachers and temperature,
        is kept; so are those of more texts than there are now.

        # Parameters

        path
            See `read_texts`.
        folder
            For the parts.
        temperature
            See `soft_labels`.
        most
            How many texts at most.
        batch_size
            How many are computed at once.

        # Returns

        `Tuple[int, str]`
            The number of texts, and a digest of what determines the parts.

        # Raises

        `ValueError`
            See `read_texts`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        n_texts = 0
        digest = hashlib.sha256()
        texts = read_texts(path, pairs=self.is_of_pairs, most=most)
        with progress_bar(None, None, "texts") as advance:
            for number, part in enumerate(lazy_groups_of(texts, _TEXTS_PER_PART)):
                about = self._label_part(part, folder / f"part-{number:05}.npz", temperature, batch_size)
                digest.update(json.dumps(about).encode())
                n_texts += len(part)
                advance(len(part))
        return n_texts, digest.hexdigest()

    def _label_part(self, part: list[Text], file: Path, temperature: float, batch_size: int) -> dict[str, Any]:
        content = json.dumps(part).encode()
        about = {
            "format": _FORMAT,
            "teachers": self._digests,
            "temperature": temperature,
            "labels": self.labels,
            "texts": hashlib.sha256(content).hexdigest(),
        }
        if _about(file) != about:
            arrays = self._compute(part, temperature, batch_size)
            with atomic_file(file) as temporary, open(temporary, "wb") as stream:
                own = {"about": _bytes(json.dumps(about).encode()), "content": _bytes(content)}
                np.savez_compressed(stream, allow_pickle=False, **own, **arrays)
        return about

    @torch.no_grad()
    def _compute(self, part: list[Text], temperature: float, batch_size: int) -> dict[str, np.ndarray]:
        """The arrays of a part, in the order of its texts."""
        # Of similar lengths in each batch.
        order = sorted(range(len(part)), key=lambda row: sum(map(len, part[row])))
        found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        is_tagger = False
        for rows in lazy_groups_of(order, batch_size):
            logits, probabilities, ends, is_tagger = self._averages([part[row] for row in rows], temperature)
            for row, end, start in zip(rows, ends, [0, *ends], strict=False):
                found[row] = logits[start:end], probabilities[start:end]
        lengths = [len(found[row][0]) for row in range(len(part))]
        arrays = [np.concatenate([found[row][which] for row in range(len(part))]) for which in (0, 1)]
        # Three digits, in half the space.
        return {
            "logits": np.clip(arrays[0], -6e4, 6e4).astype(np.float16),
            "probabilities": arrays[1].astype(np.float16),
            "ends": np.cumsum(lengths),
            "is_tagger": np.array(is_tagger),
        }

    def _averages(self, texts: list[Text], temperature: float) -> tuple[np.ndarray, np.ndarray, list[int], bool]:
        found = []
        for model, reader in self._models:
            instances = [reader.text_to_instance(*text) for text in texts]
            for instance in instances:
                reader.apply_token_indexers(instance)
            batch = Batch(instances)
            batch.index_instances(model.vocab)
            found.append(soft_labels(model, move_to_device(batch.as_tensor_dict(), self._device), temperature))
        # Shape of each: (n_items, n_labels)
        logits, probabilities = (
            np.mean(
                [values[:, order].float().cpu().numpy() for values, order in zip(each, self._orders, strict=True)], 0
            )
            for each in ([labels.logits for labels in found], [labels.probabilities for labels in found])
        )
        return logits, probabilities, found[0].ends.tolist(), found[0].is_tagger


def is_of_pairs(default_predictor: str | None) -> bool:
    """Whether a model with that predictor reads pairs of sentences."""
    return default_predictor == "elmo_snli"


def read_part(file: Path) -> Iterator[LabelledText]:
    """
    The texts of a part.

    # Raises

    `ValueError`
        If it is damaged.
    """
    try:
        with np.load(file, allow_pickle=False) as arrays:
            texts = json.loads(arrays["content"].tobytes())
            logits, probabilities, ends = arrays["logits"], arrays["probabilities"], arrays["ends"].tolist()
            is_tagger = bool(arrays["is_tagger"])
    except _DAMAGED as error:
        raise ValueError(f"{file} must be what a teacher has said of a text, but is damaged: {error}") from error
    for text, start, end in zip(texts, [0, *ends], ends, strict=False):
        rows = slice(start, end) if is_tagger else start
        yield LabelledText(text, logits[rows], probabilities[rows])


def _about(file: Path) -> Any:
    """What a part was computed from; `None` if it is not there or damaged."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            # Reading an array compares its checksum.
            for name in ("content", "logits", "probabilities", "ends", "is_tagger"):
                arrays[name]
            return json.loads(arrays["about"].tobytes())
    except _DAMAGED:
        return None


def _bytes(content: bytes) -> np.ndarray:
    return np.frombuffer(content, dtype=np.uint8)


def _labels(model: Model) -> list[str]:
    labels = model.vocab.get_index_to_token_vocabulary("labels")
    return [labels[index] for index in range(len(labels))]
