"""One vector for many words."""

import torch

__all__ = ["POOLS", "pooled"]

POOLS = ("mean", "max", "first-last")
"""The ways to do it."""


def pooled(vectors: torch.Tensor, mask: torch.Tensor, pool: str) -> torch.Tensor:
    """
    # Parameters

    vectors : `torch.Tensor`
        Shape `(..., timesteps, dim)`, forward units before backward ones, zero where there is no word.
    mask : `torch.BoolTensor`
        Shape `(..., timesteps)`: where there is a word, without gaps from the first step on.
    pool : `str`
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
