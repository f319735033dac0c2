"""
The places of the words of a batch, for encoders that run over packed sentences.

Sentences lie as `torch.nn.utils.rnn.PackedSequence` lays them out: step by step, and within a step from the longest
sentence to the shortest, so that padding costs nothing. Rows are gathered from the padded batch to their packed places
at once: no batch is sorted first.
"""

from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["PackedBatch", "pack", "sentence_lengths"]


@dataclass(frozen=True)
class PackedBatch:
    """
    The places of the words of a batch.

    # Parameters

    positions : `torch.Tensor`
        Shape `(n_words,)`: the place of each packed word in the flattened batch, `row * timesteps + column`.
    sentences : `torch.Tensor`
        Shape `(n_words,)`: the sentence of each packed word; the longest is 0.
    before, after : `torch.Tensor`
        Shape `(n_words,)`: the packed rows of the previous and of the next word, `n_words` where there is none.
    mirrored : `torch.Tensor`
        Shape `(n_words,)`: the packed row of the word that is as far from the end of the sentence as this one is from
        its begin. Rows that are selected by it are packed too, each sentence from its end to its begin; and selected by
        it once more, they are in their places again.
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


def pack(mask: torch.Tensor) -> PackedBatch:
    """
    # Parameters

    mask : `torch.BoolTensor`
        Shape `(batch_size, timesteps)`: true where there is a word. A sentence may be empty.

    # Raises

    `ValueError`
        If a sentence has words after its padding.
    """
    lengths = sentence_lengths(mask)
    timesteps = mask.shape[1]
    order = np.argsort(-lengths, kind="stable")
    longest = int(lengths.max(initial=0))
    # How many sentences are longer than each step.
    sizes = np.searchsorted(-lengths[order], -np.arange(longest), side="left")
    ends = np.cumsum(sizes)
    starts = ends - sizes
    n_words = int(sizes.sum())
    # For each packed row its step, and its sentence.
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


def sentence_lengths(mask: torch.Tensor) -> np.ndarray:
    """The number of words of each sentence, of shape `(batch_size,)`; errors as in `pack`."""
    is_word = mask.cpu().numpy()
    # Shape: (batch_size,)
    lengths: np.ndarray = is_word.sum(-1)
    # Shape: (batch_size, timesteps)
    expected = np.arange(is_word.shape[1]) < lengths[:, None]
    if not np.array_equal(is_word, expected):
        row = int(np.flatnonzero((is_word != expected).any(-1))[0])
        raise ValueError(
            f"the words of a sentence must come before its padding, but sentence {row} has words at positions "
            f"{np.flatnonzero(is_word[row]).tolist()}: pad on the right"
        )
    return lengths
