"""The positions of a batch's words, for encoders that run over packed sentences."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["PackedBatch", "first_rows", "pack"]


@dataclass(frozen=True)
class PackedBatch:
    """
    Sentences are packed as in `torch.nn.utils.rnn.PackedSequence`: step by step, and within a step from the longest
    sentence to the shortest, so padding costs nothing.

    # Parameters

    positions : `torch.Tensor`
        Shape `(n_words,)`: the position of each packed word in the flattened batch, `row * timesteps + column`.
    sentences : `torch.Tensor`
        Shape `(n_words,)`: the sentence of each packed word; the longest is 0.
    before, after : `torch.Tensor`
        Shape `(n_words,)`: the packed rows of the previous and the next word, or `n_words` if it does not exist.
    mirrored : `torch.Tensor`
        Shape `(n_words,)`: the packed row of the word that is as far from the end of the sentence as this one is from
        its beginning. Rows selected with it are also packed, with each sentence reversed.
    steps : `List[slice]`
        The packed rows of each step.
    """

    positions: torch.Tensor
    sentences: torch.Tensor
    before: torch.Tensor
    after: torch.Tensor
    mirrored: torch.Tensor
    steps: list[slice]

    @property
    def n_sentences(self) -> int:
        """The number of sentences with words."""
        return self.steps[0].stop if self.steps else 0

    @property
    def batch_sizes(self) -> list[int]:
        """The number of sentences that have a word at each step."""
        return [rows.stop - rows.start for rows in self.steps]

    def in_directions(self, parts: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """
        The forward direction's words unchanged and the backward direction's words mirrored, from one or two tensors of
        shape `(n_words, dim)`. A second call restores the order.
        """
        forward, *backward = parts
        return [forward, *(part.index_select(0, self.mirrored) for part in backward)]

    def previous(self, outputs: torch.Tensor) -> torch.Tensor:
        """Each direction's values at the previous word, zero at first words: shape `(n_directions, n_words, dim)`."""
        n_first = self.n_sentences
        first = outputs.new_zeros(len(outputs), n_first, outputs.size(-1))
        return torch.cat([first, outputs.index_select(1, self.before[n_first:])], 1)


def pack(mask: torch.Tensor) -> PackedBatch:
    """From a mask of shape `(batch_size, timesteps)`, true at words, which come before the padding."""
    # Shape: (batch_size,)
    lengths = mask.sum(-1).cpu().numpy()
    timesteps = mask.shape[1]
    order = np.argsort(-lengths, kind="stable")
    longest = int(lengths.max(initial=0))
    # The number of sentences that are longer than each step.
    sizes = np.searchsorted(-lengths[order], -np.arange(longest), side="left")
    ends = np.cumsum(sizes)
    starts = ends - sizes
    n_words = int(sizes.sum())
    # The step and the sentence of each packed row.
    step = np.repeat(np.arange(longest), sizes)
    sentence = np.arange(n_words) - starts[step]
    last_step = lengths[order][sentence] - 1
    rows = (
        order[sentence] * timesteps + step,
        sentence,
        np.where(step == 0, n_words, starts[step - 1] + sentence),
        np.where(step == last_step, n_words, starts[(step + 1) % max(longest, 1)] + sentence),
        starts[last_step - step] + sentence,
    )
    # Shape: (5, n_words)
    on_device = torch.from_numpy(np.stack(rows)).to(mask.device)
    steps = [slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]
    positions, sentences, before, after, mirrored = on_device.unbind()
    return PackedBatch(positions, sentences, before, after, mirrored, steps)


def first_rows(tensor: torch.Tensor, n_rows: int) -> torch.Tensor:
    """The first rows of shape `(n_directions, n, dim)`. Slicing is slow in loops, so it is skipped where possible."""
    return tensor if tensor.size(1) == n_rows else tensor[:, :n_rows]
