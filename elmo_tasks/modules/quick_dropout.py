"""Dropout that gets four random numbers from one draw."""

import torch

__all__ = ["QuickDropout"]

_LEVELS = 2**16


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
