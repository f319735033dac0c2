"""One vector for many words."""

from typing import Literal, get_args

import torch

__all__ = ["POOLS", "Pool", "pooled"]

Pool = Literal["mean", "max", "first-last"]
POOLS: tuple[Pool, ...] = get_args(Pool)


def pooled(vectors: torch.Tensor, mask: torch.Tensor, pool: Pool) -> torch.Tensor:
    """
    # Parameters

    vectors
        Shape `(..., timesteps, dim)`, forward units before backward ones, zero where there is no word.
    mask
        Boolean, shape `(..., timesteps)`: where there is a word, without gaps from the first step on.
    pool
        `"mean"` of the words; `"max"`, the greatest value of each unit; or `"first-last"`, the forward units of the
        last word and the backward units of the first, which have each read the whole sentence.

    # Returns

    `torch.Tensor`
        Shape `(..., dim)`; zeros where there are no words at all.
    """
    # Shape: (..., 1)
    lengths = mask.sum(-1, keepdim=True)
    if pool == "mean" or not vectors.size(-2):
        return vectors.sum(-2) / lengths.clamp(min=1)
    if pool == "max":
        highest = vectors.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(-2)
        return highest.masked_fill(lengths == 0, 0.0)
    n_forward = vectors.size(-1) // 2
    # Shape: (..., 1, dim)
    at = (lengths - 1).clamp(min=0).unsqueeze(-1).expand(*vectors.shape[:-2], 1, vectors.size(-1))
    last = vectors.gather(-2, at).squeeze(-2)
    return torch.cat([last[..., :n_forward], vectors[..., 0, n_forward:]], -1)
