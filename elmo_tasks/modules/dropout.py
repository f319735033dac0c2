"""torch's dropout in less time."""

import math

import torch

__all__ = ["Dropout"]


class Dropout(torch.nn.Dropout):
    """
    torch's dropout in less time on a CPU, where torch draws 64 random bits for each element. Here,
    four elements share them, so the probability is a multiple of 2^-16.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training or not 0.0 < self.p < 1.0 or input.device.type != "cpu":
            return super().forward(input)
        # Of the 2^16 values of a draw.
        n_dropped = round(self.p * 2**16)
        n_draws = math.ceil(input.numel() / 4)
        draws = torch.empty(n_draws, dtype=torch.int64).random_(-(2**63), None)
        levels = draws.view(torch.int16)[: input.numel()].view(input.shape)
        # 1 where the input is kept. Shape: as the input
        scales = torch.empty_like(input, requires_grad=False)
        torch.ge(levels, n_dropped - 2**15, out=scales)
        return input * scales.mul_(2**16 / (2**16 - n_dropped))
