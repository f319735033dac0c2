"""The words of a batch, and how sentences are packed by length and unpacked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch

from elmo_tasks.bilm.character_ids import WordRows

__all__ = [
    "PackedBatch",
    "PackedSentences",
    "mask_of",
    "on_device",
    "pack",
    "pack_sentences",
    "previous_values",
]


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copies a tensor without waiting for the GPU's queued work, which needs pinned memory."""
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


@dataclass(frozen=True)
class PackedBatch:
    """
    The sentences of a batch, laid out as in `torch.nn.utils.rnn.PackedSequence`: step by step, and
    within a step from the longest sentence to the shortest, so padding costs nothing.

    # Parameters

    batch_sizes
        The number of sentences that have a word at each step.
    rows
        Shape `(batch_size,)`: the rows of the sentences in the batch, the longest sentence first.
    sentences, steps
        Shape `(n_words,)`: for each packed word, its sentence, an index of `rows`, and its position
        in the sentence.
    before
        Shape `(n_words,)`: the packed row of the previous word, or `n_words` if it does not exist.
    mirrored
        Shape `(n_words,)`: the packed row of the word that is as far from the end of the sentence
        as this one is from its beginning. Rows selected with it are also packed, with each sentence
        reversed.
    """

    batch_sizes: list[int]
    rows: torch.Tensor
    sentences: torch.Tensor
    steps: torch.Tensor
    before: torch.Tensor
    mirrored: torch.Tensor

    @property
    def n_sentences(self) -> int:
        """The number of sentences with words."""
        return self.batch_sizes[0] if self.batch_sizes else 0

    def positions(self, timesteps: int) -> torch.Tensor:
        """The position of each packed word in the flattened batch: shape `(n_words,)`."""
        return self.rows[self.sentences] * timesteps + self.steps

    def to(self, device: torch.device) -> Self:
        """The same batch with its tensors on a device."""
        tensors = {
            name: value for name, value in vars(self).items() if isinstance(value, torch.Tensor)
        }
        # In one copy: each takes the time of a kernel.
        together = torch.cat([tensor.flatten() for tensor in tensors.values()])
        sizes = [tensor.numel() for tensor in tensors.values()]
        copies = torch.split(on_device(together, device), sizes)
        moved: dict[str, Any] = {}
        for (name, tensor), copy in zip(tensors.items(), copies, strict=True):
            moved[name] = copy.view(tensor.shape)
        return replace(self, **moved)


def pack(lengths: np.ndarray) -> PackedBatch:
    """Packs sentences, given the number of words in each, of shape `(batch_size,)`."""
    rows = np.argsort(-lengths, kind="stable")
    lengths = lengths[rows]
    # Sentences are in descending order of length: count those that are longer than each step.
    batch_sizes = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)), side="left")
    first_rows = np.cumsum(batch_sizes) - batch_sizes
    # The step and the sentence of each packed row.
    steps = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    n_words = len(steps)
    sentences = np.arange(n_words) - first_rows[steps]
    before = np.where(steps == 0, n_words, first_rows[steps - 1] + sentences)
    mirrored_steps = lengths[sentences] - 1 - steps
    mirrored = first_rows[mirrored_steps] + sentences
    return PackedBatch(
        batch_sizes=batch_sizes.tolist(),
        rows=torch.from_numpy(rows),
        sentences=torch.from_numpy(sentences),
        steps=torch.from_numpy(steps),
        before=torch.from_numpy(before),
        mirrored=torch.from_numpy(mirrored),
    )


def previous_values(
    values: torch.Tensor, first: torch.Tensor, batch_sizes: Sequence[int]
) -> list[torch.Tensor]:
    """
    For each step, the values at the previous words, from the values at all words, of shape
    `(n, n_words, dim)`, and before the first words, of shape `(n, n_sentences, dim)`.
    """
    values_of_steps = torch.split(values, list(batch_sizes), 1)
    before = [first, *values_of_steps[:-1]]
    # The step before may have more rows.
    return [previous[:, :size] for previous, size in zip(before, batch_sizes, strict=False)]


@dataclass(frozen=True)
class PackedSentences(PackedBatch):
    """
    Sentences that are packed with their two boundaries. The backward direction reads each sentence
    from its end.

    # Parameters

    words
        Shape `(2, n_packed_words)`: for each direction, the number of each packed word. Words are
        numbered through the batch, without padding; the begin and the end of a sentence have the
        two numbers after the last word.
    sources
        Shape `(2, n_words)`: for each direction, the packed row of each word that is not a
        boundary.
    targets
        Shape `(n_words,)`: the position of the same words in the flattened batch.
    """

    words: torch.Tensor
    sources: torch.Tensor
    targets: torch.Tensor

    def of_words(self, packed: torch.Tensor) -> torch.Tensor:
        """
        From shape `(2, n_packed_words, dim)` to `(n_words, 2 * dim)`, in the order of `targets`.
        """
        forward, backward = packed
        forward_rows, backward_rows = self.sources
        return torch.cat([forward[forward_rows], backward[backward_rows]], -1)

    def fill_in(self, layer: torch.Tensor, packed: torch.Tensor) -> None:
        """
        Writes `packed`, of shape `(2, n_packed_words, dim)`, into a layer of the batch, without
        boundaries.
        """
        layer.view(-1, layer.size(-1)).index_copy_(
            0, self.targets, self.of_words(packed).to(layer.dtype)
        )


def pack_sentences(is_word: np.ndarray) -> PackedSentences:
    """
    Packs the sentences of a batch, at least one, from the mask of their words, with their
    boundaries.
    """
    lengths = is_word.sum(-1)
    batch = pack(lengths + 2)
    n_words = int(lengths.sum())
    starts = torch.from_numpy(np.cumsum(lengths) - lengths)
    # Shape: (n_packed_words,)
    numbers = starts[batch.rows[batch.sentences]] + batch.steps - 1
    numbers[: batch.n_sentences] = n_words
    numbers[batch.mirrored[: batch.n_sentences]] = n_words + 1
    inside = (numbers < n_words).nonzero().squeeze(-1)
    return PackedSentences(
        **vars(batch),
        words=torch.stack([numbers, numbers[batch.mirrored]]),
        sources=torch.stack([inside, batch.mirrored[inside]]),
        targets=batch.positions(is_word.shape[1])[inside] - 1,
    )


def mask_of(character_ids: torch.Tensor, rows: WordRows) -> np.ndarray:
    """
    Which ids, of shape `(batch_size, timesteps, width)`, are words: shape
    `(batch_size, timesteps)`. Raises `ValueError` if the ids have a different shape or a word comes
    after padding.
    """
    if character_ids.dim() != 3 or character_ids.size(-1) != rows.width:
        raise ValueError(
            f"expected character ids of shape (batch_size, timesteps, {rows.width}), "
            f"got {tuple(character_ids.shape)}"
        )
    mask: np.ndarray = (character_ids > 0).any(-1).cpu().numpy()
    is_misplaced = (mask[:, 1:] & ~mask[:, :-1]).any(-1)
    if is_misplaced.any():
        raise ValueError(
            "expected padding on the right only, "
            f"got words after padding in sentence {is_misplaced.argmax()}"
        )
    return mask
