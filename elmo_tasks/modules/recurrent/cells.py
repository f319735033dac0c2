"""
The cells of the task models' recurrent layers, for `Recurrence`: one step, and its derivatives at all words.

Logistic functions `s` replace hyperbolic tangents, at a fraction of the cost on a CPU: `tanh(x) / 2 = s(2 x) - 1/2`.
All cells compute such halves, from products `z` that are doubled for the candidates (see `scales`), so candidates and
outputs are half the usual ones. Products are in blocks of `dim`, and become the gates in place.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch

__all__ = ["Cell", "GruCell", "HighwayCell", "LstmCell"]


class Cell:
    """The settings of a cell; `LstmCell` describes the methods."""

    scales: ClassVar[Sequence[float]]
    """By how much the usual products of each block are multiplied."""
    logistic: ClassVar[slice]
    """The blocks that are replaced by their logistic function before `forward`."""
    n_kept: ClassVar[int]
    """The tensors that `forward` fills for the backward pass: the memory is the first, the output the last."""
    start: ClassVar[float]
    """The memory and the output before the first word; added to all outputs."""


class LstmCell(Cell):
    """
    `torch.nn.LSTM`, with twice its memory:

        i, f, g, o = s(z_i), s(z_f), s(z_g) - 1/2, s(z_o)
        m_t = f * m_{t-1} + 4 i g
        q_t = s(m_t) - 1/2
        h_t = o * q_t
    """

    scales: ClassVar[Sequence[float]] = (1, 1, 2, 1)
    logistic = slice(0, 4)
    n_kept = 3
    start = 0.0

    @staticmethod
    def forward(memory: torch.Tensor, *parts: torch.Tensor) -> None:
        """From the previous memory, the blocks and the tensors to fill, of shape `(n_directions, n_rows, dim)` each."""
        i, f, g, o, m, q, h = parts
        torch.mul(memory, f, out=m).addcmul_(i, g.sub_(0.5), value=4.0)
        torch.mul(torch.sigmoid(m, out=q).sub_(0.5), o, out=h)

    @staticmethod
    def derivatives(gates: torch.Tensor, kept: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """
        At each word, given the memory before it, the derivatives of the memory or the output by the products, in the
        shape of the gates; of the output by the memory; and of the memory by the one before.
        """
        i, f, g, o = gates.split(before.size(-1), -1)[:4]
        # The derivative of the logistic function, which is wrong only for g.
        slopes = torch.addcmul(gates, gates, gates, value=-1.0)
        by_i, by_f, by_g, by_o = slopes.split(before.size(-1), -1)[:4]
        by_i.mul_(g).mul_(4.0)
        by_f.mul_(before)
        torch.mul(g, g, out=by_g).sub_(0.25).mul_(i).mul_(-4.0)
        by_o.mul_(kept[1])
        return slopes, kept[1].square().sub_(0.25).mul_(o).neg_(), f

    @staticmethod
    def backward(
        d_output: torch.Tensor, d_previous: torch.Tensor | None, d_memory: torch.Tensor, *parts: torch.Tensor
    ) -> None:
        """
        Multiplies the `derivatives` at some rows, with the first of shape `(n_directions, n_rows, n_blocks, dim)`, by
        the gradient of the output or the memory, and turns the latter into the gradient of the memory before. Without
        a separate memory, adds to the gradient of the previous output instead, if there is one.
        """
        by_block, by_memory, f = parts
        d_memory.addcmul_(d_output, by_memory)
        by_block[:, :, :3].mul_(d_memory.unsqueeze(2))
        by_block[:, :, 3:].mul_(d_output.unsqueeze(2))
        d_memory.mul_(f)


class HighwayCell(LstmCell):
    """An LSTM with half of a highway's input `x` as the last product: `h_t = r * o * q_t + (1 - r) * x`."""

    scales = (1, 1, 2, 1, 1, 0.5)
    logistic = slice(0, 5)

    @staticmethod
    def forward(memory: torch.Tensor, *parts: torch.Tensor) -> None:
        i, f, g, o, r, x, m, q, h = parts
        LstmCell.forward(memory, i, f, g, o, m, q, h)
        torch.lerp(x, h, r, out=h)

    @staticmethod
    def derivatives(gates: torch.Tensor, kept: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, ...]:
        slopes, by_memory, f = LstmCell.derivatives(gates, kept, before)
        o, r, x = gates.split(before.size(-1), -1)[3:]
        by_o, by_r, by_x = slopes.split(before.size(-1), -1)[3:]
        by_o.mul_(r)
        by_r.mul_(torch.addcmul(-x, o, kept[1]))
        torch.sub(1.0, r, out=by_x)
        return slopes, by_memory.mul_(r), f


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

    @staticmethod
    def forward(memory: torch.Tensor, *parts: torch.Tensor) -> None:
        y, r, u, n, h = parts
        torch.lerp(n.addcmul_(r, y).sigmoid_(), memory, u, out=h)

    @staticmethod
    def derivatives(gates: torch.Tensor, kept: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, r, u, n = gates.chunk(4, -1)
        slopes = torch.empty_like(gates)
        by_y, by_r, by_u, by_n = slopes.chunk(4, -1)
        torch.addcmul(n, n, n, value=-1.0, out=by_n).addcmul_(by_n, u, value=-1.0)
        torch.mul(by_n, r, out=by_y)
        torch.addcmul(by_n, by_n, r, value=-1.0, out=by_r).mul_(y).mul_(r)
        torch.addcmul(u, u, u, value=-1.0, out=by_u).mul_(before - n)
        return slopes, u

    @staticmethod
    def backward(
        d_output: torch.Tensor, d_previous: torch.Tensor | None, d_memory: torch.Tensor, *parts: torch.Tensor
    ) -> None:
        by_block, u = parts
        by_block.mul_(d_output.unsqueeze(2))
        if d_previous is not None:
            d_previous.addcmul_(d_output, u)
