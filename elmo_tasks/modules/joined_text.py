"""Two texts as one batch of sentences."""

import torch
from allennlp.data import TextFieldTensors
from torch.nn.functional import pad

__all__ = ["join"]


def join(one: TextFieldTensors, other: TextFieldTensors) -> TextFieldTensors:
    """
    The sentences of two text fields in one batch, so that what they share (embedders, the biLM, an encoder) runs once
    for both.

    # Parameters

    one, other : `TextFieldTensors`
        From the same token indexers.

    # Returns

    `TextFieldTensors`
        The sentences of `one` and then those of `other`: each tensor has the sum of the two batch sizes, and in every
        other dimension the larger of the two sizes, padded with zeros.
    """
    return {
        indexer: {name: _stack(tensor, other[indexer][name]) for name, tensor in tensors.items()}
        for indexer, tensors in one.items()
    }


def _stack(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    sizes = [max(pair) for pair in zip(one.shape[1:], other.shape[1:], strict=True)]
    return torch.cat([_padded(one, sizes), _padded(other, sizes)])


def _padded(tensor: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    # From the last dimension to the second, as `pad` counts them.
    missing = [size - there for size, there in zip(sizes, tensor.shape[1:], strict=True)]
    return pad(tensor, [padding for size in reversed(missing) for padding in (0, size)])
