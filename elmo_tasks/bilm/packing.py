"""The lengths of the sentences in a batch, and how they are packed by length and unpacked."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from elmo_tasks.bilm.characters import WordRows

__all__ = ["PackedSentences", "pack_sentences", "sentence_lengths"]


@dataclass(frozen=True)
class PackedSentences:
    """
    The sentences of a batch, each between its two boundaries, laid out step by step, and within a step from the longest
    sentence to the shortest. The backward direction reads each sentence from its end, so both directions have the same
    number of sentences at every step.

    # Parameters

    rows
        The indices of the sentences in the batch, the longest sentence first.
    batch_sizes
        The number of sentences that have a word at each step.
    words
        Shape `(2, n_packed_words)`: for each direction, the number of each packed word. Words are numbered through the
        batch, without padding; the begin and the end of a sentence have the two numbers after the last word.
    before
        For each packed word, starting at the second step, the packed row of the previous word.
    rows_of_words
        The index in the batch of each packed word's sentence.
    positions
        The positions of the words, without boundaries, in the flattened batch: `row * timesteps + column`.
    sources
        Shape `(2, n_words)`: for each direction, the packed row of each word in `positions`.
    """

    rows: torch.Tensor
    batch_sizes: list[int]
    words: torch.Tensor
    before: torch.Tensor
    rows_of_words: torch.Tensor
    positions: torch.Tensor
    sources: torch.Tensor

    def to(self, device: torch.device) -> "PackedSentences":
        """The same sentences with their tensors on a device."""
        moved: Any = {name: part.to(device) for name, part in vars(self).items() if isinstance(part, torch.Tensor)}
        return replace(self, **moved)

    def fill_in(self, layer: torch.Tensor, packed: torch.Tensor) -> None:
        """Writes `packed`, of shape `(2, n_packed_words, dim)`, into a layer of the batch, without boundaries."""
        # Shape: (n_words, 2 * dim)
        words = torch.cat([part[source] for part, source in zip(packed, self.sources, strict=True)], -1)
        layer.view(-1, layer.size(-1)).index_copy_(0, self.positions, words.to(layer.dtype))


def pack_sentences(lengths: np.ndarray, timesteps: int) -> PackedSentences:
    """
    Sorts the sentences of a batch by length and packs them.

    # Parameters

    lengths
        Shape `(batch_size,)`: the number of words in each sentence; at least one sentence.
    timesteps
        The padded length of the batch.
    """
    n_words = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    rows = np.argsort(-lengths, kind="stable")
    lengths, starts = lengths[rows], starts[rows]
    bounded = lengths + 2
    # Sentences are in descending order of length: count those that are longer than each step.
    batch_sizes = np.searchsorted(-bounded, -np.arange(bounded[0]), side="left")
    firsts = np.cumsum(batch_sizes) - batch_sizes
    # The step and the sentence of each packed row.
    step = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    sentence = np.arange(len(step)) - firsts[step]

    def words(at: np.ndarray) -> np.ndarray:
        """The numbers of words, from their positions in sentences with boundaries."""
        numbers = np.where(at == 0, n_words, starts[sentence] + at - 1)
        return np.where(at == bounded[sentence] - 1, n_words + 1, numbers)

    # The sentence of each word, and its position between the boundaries.
    owner = np.repeat(np.arange(len(rows)), lengths)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    return PackedSentences(
        rows=torch.from_numpy(rows),
        batch_sizes=batch_sizes.tolist(),
        words=torch.from_numpy(np.stack([words(step), words(bounded[sentence] - 1 - step)])),
        before=torch.from_numpy((firsts[step - 1] + sentence)[batch_sizes[0] :]),
        rows_of_words=torch.from_numpy(rows[sentence]),
        positions=torch.from_numpy(rows[owner] * timesteps + place - 1),
        sources=torch.from_numpy(np.stack([firsts[place], firsts[bounded[owner] - 1 - place]]) + owner),
    )


def sentence_lengths(character_ids: torch.Tensor, rows: WordRows) -> np.ndarray:
    """
    The number of words in each sentence, of shape `(batch_size,)`, from ids of shape `(batch_size, timesteps, width)`,
    zero for padding. Raises `ValueError` if the shape is different or a word comes after padding.
    """
    if character_ids.dim() != 3 or character_ids.size(-1) != rows.width:
        raise ValueError(
            f"expected character ids of shape (batch_size, timesteps, {rows.width}), got {tuple(character_ids.shape)}"
        )
    # Shape: (batch_size, timesteps)
    mask = (character_ids > 0).any(-1).cpu().numpy()
    # Shape: (batch_size,)
    lengths: np.ndarray = mask.sum(-1)
    # Shape: (batch_size, timesteps)
    expected = np.arange(mask.shape[1]) < lengths[:, None]
    if not np.array_equal(mask, expected):
        row = int(np.flatnonzero((mask != expected).any(-1))[0])
        raise ValueError(f"expected padding on the right only, got words after padding in sentence {row}")
    return lengths
