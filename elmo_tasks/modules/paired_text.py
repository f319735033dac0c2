"""Two batches of texts as one, so that an encoder of both runs once."""

import torch
from allennlp.data import TextFieldTensors

__all__ = ["concat_texts"]


def concat_texts(one: TextFieldTensors, other: TextFieldTensors) -> TextFieldTensors:
    """
    Two batches of texts as one: those of the first, then those of the second. A model of pairs embeds and encodes it
    with one pass of the biLM and of a shared encoder, and then separates the two parts by their rows.

    # Parameters

    one, other : `TextFieldTensors`
        With the same indexers. Tensors of shapes `(n_one, timesteps, ...)` and `(n_other, timesteps, ...)`.

    # Returns

    `TextFieldTensors`
        Each tensor of shape `(n_one + n_other, timesteps, ...)`: every dimension but the first has the larger size of
        the two, and the smaller tensor is padded with zeros.

    # Raises

    `ValueError`
        If the two have different indexers.
    """
    return {
        indexer: {
            name: _join(one[indexer][name], other[indexer][name]) for name in _same_names(one[indexer], other[indexer])
        }
        for indexer in _same_names(one, other)
    }


def _join(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    # A batch of empty texts may lack the dimension of the characters, and has no values to copy.
    dims = max(first.dim(), second.dim())
    lengths = [max(part.shape[dim] if dim < part.dim() else 0 for part in (first, second)) for dim in range(1, dims)]
    # AllenNLP's indexers pad with zero: the padding of a vocabulary, no character, and False in a mask.
    joined = (first if first.numel() else second).new_zeros(len(first) + len(second), *lengths)
    for part, start in ((first, 0), (second, len(first))):
        if part.numel():
            joined[(slice(start, start + len(part)), *map(slice, part.shape[1:]))] = part
    return joined


def _same_names(first: dict, second: dict) -> list[str]:
    if first.keys() != second.keys():
        raise ValueError(
            f"the two texts must have the same token indexers, but one has {sorted(first)} and the other "
            f"{sorted(second)}: give both fields the same `token_indexers`"
        )
    return list(first)
