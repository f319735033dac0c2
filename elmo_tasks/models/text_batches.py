"""Batches of texts: two joined into one, and one without repetitions."""

import torch
from allennlp.data import TextFieldTensors
from torch.nn.functional import pad

__all__ = ["concat_texts", "without_repetitions"]


def concat_texts(one: TextFieldTensors, other: TextFieldTensors) -> TextFieldTensors:
    """
    Joins two batches of texts, so the biLM and a shared encoder run once: first the texts of `one`,
    then the texts of `other`. Every dimension but the first has the larger size of the two.
    """
    joined: TextFieldTensors = {}
    for indexer, tensors in one.items():
        joined[indexer] = {}
        for name, tensor in tensors.items():
            joined[indexer][name] = _concat(tensor, other[indexer][name])
    return joined


def _concat(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    sizes = [max(pair) for pair in zip(above.shape[1:], below.shape[1:], strict=True)]
    # Indexers pad with zero, which is padding in a vocabulary, no character, and False in a mask.
    joined = above.new_zeros(len(above) + len(below), *sizes)
    _corner(joined[: len(above)], above.shape).copy_(above)
    _corner(joined[len(above) :], below.shape).copy_(below)
    return joined


def _corner(tensor: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A view of the beginning of each dimension."""
    for dim, size in enumerate(shape):
        tensor = tensor.narrow(dim, 0, size)
    return tensor


def without_repetitions(tokens: TextFieldTensors) -> tuple[TextFieldTensors, torch.Tensor]:
    """
    The texts of a batch without those that repeat the text before, and the row in them of each text
    of the batch.
    """
    flat = []
    for tensors in tokens.values():
        for tensor in tensors.values():
            flat.append(tensor.flatten(1))
    # Shape: (batch_size, n_ids)
    ids = torch.cat(flat, 1)
    # Shape: (batch_size - 1,)
    is_different = (ids[1:] != ids[:-1]).any(1)
    # Shape: (batch_size,)
    is_new = pad(is_different, (1, 0), value=True)
    distinct: TextFieldTensors = {}
    for indexer, tensors in tokens.items():
        distinct[indexer] = {name: tensor[is_new] for name, tensor in tensors.items()}
    return distinct, is_new.cumsum(0) - 1
