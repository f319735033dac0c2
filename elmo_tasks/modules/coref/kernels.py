"""What takes longest for pairs of mentions: linear maps of the products of two vectors, and dropout."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

__all__ = ["QuickDropout", "pair_products"]

_LEVELS = 2**16


def pair_products(mentions: torch.Tensor, antecedents: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """
    The product of a matrix with the elementwise product of both vectors of each pair. There are fewer hidden units than
    antecedents, so the matrix is multiplied with the mentions' vectors, and no product of two vectors is stored.

    From shapes `(n_mentions, dim)`, `(n_antecedents, dim)` and `(hidden_dim, dim)` to
    `(n_mentions, n_antecedents, hidden_dim)`. On the CPU it cannot be differentiated twice.
    """
    if mentions.device.type == "cpu":
        products: torch.Tensor = _ByMention.apply(mentions, antecedents, weight)
        return products
    # Shape: (n_mentions * hidden_dim, dim)
    weights = (weight * mentions.unsqueeze(1)).flatten(0, 1)
    return (antecedents @ weights.t()).unflatten(1, (len(mentions), -1)).transpose(0, 1)


class _ByMention(torch.autograd.Function):
    """
    One mention at a time: its share of each product and gradient stays in the processor's cache, where all at once are
    25 MB to write and to read again for 32 mentions.
    """

    @staticmethod
    def forward(ctx: Any, mentions: torch.Tensor, antecedents: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(mentions, antecedents, weight)
        products = mentions.new_empty(len(mentions), len(antecedents), len(weight))
        # Shape: (hidden_dim, dim)
        of_mention = torch.empty_like(weight)
        for mention, product in zip(mentions, products, strict=True):
            torch.mul(weight, mention, out=of_mention)
            torch.mm(antecedents, of_mention.t(), out=product)
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_products: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mentions, antecedents, weight = ctx.saved_tensors
        d_mentions = torch.empty_like(mentions)
        d_antecedents, d_weight = torch.zeros_like(antecedents), torch.zeros_like(weight)
        # Shape: (hidden_dim, dim), each
        of_mention, d_of_mention = torch.empty_like(weight), torch.empty_like(weight)
        for mention, d_mention, d_product in zip(mentions, d_mentions, d_products, strict=True):
            torch.mul(weight, mention, out=of_mention)
            d_antecedents.addmm_(d_product, of_mention)
            torch.mm(d_product.t(), antecedents, out=d_of_mention)
            d_weight.addcmul_(d_of_mention, mention)
            torch.sum(d_of_mention.mul_(weight), 0, out=d_mention)
        return d_mentions, d_antecedents, d_weight


class QuickDropout(torch.nn.Dropout):
    """
    Dropout for large tensors on the CPU, where torch draws a random number of 64 bits for each element, and drawing
    takes longer than all else. Here four elements share one, with 16 bits each, so the probability is a multiple
    of 2^-16. On other devices it is torch's dropout.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        n_dropped = round(self.p * _LEVELS)
        if not self.training or input.device.type != "cpu" or n_dropped in (0, _LEVELS):
            return super().forward(input)
        draws = torch.empty(-(-input.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        levels = draws.view(torch.int16)[: input.numel()].view(input.shape)
        # A product with zeros and scales is much faster than a choice by a mask. Shape: as the input
        scales = torch.ge(levels, n_dropped - _LEVELS // 2, out=torch.empty_like(input, requires_grad=False))
        return input * scales.mul_(_LEVELS / (_LEVELS - n_dropped))
