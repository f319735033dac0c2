"""The other cells of the task models, in the form of `LstmCell`, which explains the factors of 2."""

from collections.abc import Sequence

import torch

from elmo_tasks.bilm.lstm.cell import Cell, LstmCell

__all__ = ["GruCell", "HighwayCell"]


class HighwayCell(LstmCell):
    """An LSTM with half of a highway's input `x` as the last product: `h_t = r * o * q_t + (1 - r) * x`."""

    scales = (1, 1, 2, 1, 1, 0.5)
    logistic = slice(0, 5)

    def forward(self, memory: torch.Tensor, *parts: torch.Tensor) -> None:
        i, f, g, o, r, x, m, q, h = parts
        super().forward(memory, i, f, g, o, m, q, h)
        torch.lerp(x, h, r, out=h)

    def derivatives(
        self, gates: torch.Tensor, kept: Sequence[torch.Tensor], before: torch.Tensor, by_product: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        by_memory, f = super().derivatives(gates, kept, before, by_product)
        o, r, x = gates.split(before.size(-1), -1)[3:]
        by_o, by_r, by_x = by_product.split(before.size(-1), -1)[3:]
        by_o.mul_(r)
        by_r.mul_(torch.addcmul(-x, o, kept[1]))
        torch.sub(1.0, r, out=by_x)
        return by_memory.mul_(r), f


class GruCell(Cell):
    """
    `torch.nn.GRU`, with an output that is also the memory, and with the products `y` of the previous output:

        r, u = s(z_r), s(z_u)
        n    = s(z_n + r * y)
        h_t  = (1 - u) * n + u * h_{t-1}

    Because this interpolates, no half is subtracted: it is in `h_0` and all outputs. The blocks are y, r, u, n.
    """

    scales = (2, 1, 1, 2)
    logistic = slice(1, 3)
    n_kept = 1
    start = 0.5

    def forward(self, memory: torch.Tensor, *parts: torch.Tensor) -> None:
        y, r, u, n, h = parts
        torch.lerp(n.addcmul_(r, y).sigmoid_(), memory, u, out=h)

    def derivatives(
        self, gates: torch.Tensor, kept: Sequence[torch.Tensor], before: torch.Tensor, by_product: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        y, r, u, n = gates.chunk(4, -1)
        by_y, by_r, by_u, by_n = by_product.chunk(4, -1)
        torch.addcmul(n, n, n, value=-1.0, out=by_n).addcmul_(by_n, u, value=-1.0)
        torch.mul(by_n, r, out=by_y)
        torch.addcmul(by_n, by_n, r, value=-1.0, out=by_r).mul_(y).mul_(r)
        torch.addcmul(u, u, u, value=-1.0, out=by_u).mul_(before - n)
        return (u,)

    def backward(
        self,
        d_output: torch.Tensor,
        d_previous: torch.Tensor | None,
        d_memory: torch.Tensor,
        by_product: torch.Tensor,
        *derivatives: torch.Tensor,
    ) -> None:
        by_product.mul_(d_output.unsqueeze(-2))
        if d_previous is not None:
            d_previous.addcmul_(d_output, derivatives[0])
