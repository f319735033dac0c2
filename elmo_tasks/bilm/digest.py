"""The digest by which an index, a job or a cache recognises the weights that it was made with."""

import hashlib
from collections.abc import Mapping

import torch

__all__ = ["weights_digest"]


def weights_digest(options: object, weights: Mapping[str, torch.Tensor]) -> bytes:
    """A 32-byte digest of the options and of the name, type, shape and values of each weight."""
    digest = hashlib.blake2b(repr(options).encode(), digest_size=32)
    for name, weight in sorted(weights.items()):
        digest.update(repr((name, weight.dtype, tuple(weight.shape))).encode())
        digest.update(weight.detach().cpu().flatten().view(torch.uint8).numpy().data)
    return digest.digest()
