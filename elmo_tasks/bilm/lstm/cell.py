"""
The LSTM cell of the biLM and of the task models: one step, and its derivatives.

On a CPU, a logistic function `s` costs a sixth of a hyperbolic tangent, so all cells compute halves of the latter:
`tanh(x) / 2 = s(2 x) - 1/2`. The factors of 2 are multiplied into the weights in advance, which is exact: products `z`
are doubled for the candidates, and outputs are half the usual ones. Products are in blocks of `dim`, and become the
gates in place.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch

__all__ = ["Cell", "LstmCell"]


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

    `clip` is the largest magnitude of the usual memory. Clipped values get no gradient.
    """

    scales: ClassVar[Sequence[float]] = (1, 1, 2, 1)
    logistic = slice(0, 4)
    n_kept = 3
    start = 0.0

    def __init__(self, clip: float | None = None) -> None:
        self.clip = clip

    def forward(self, memory: torch.Tensor, *parts: torch.Tensor) -> None:
        """
        From the previous memory, the blocks and the tensors to fill, of shape `(n_directions, n_rows, dim)` each. `m`
        may be the previous memory, and `q` may be `h`.
        """
        i, f, g, o, m, q, h = parts
        torch.mul(memory, f, out=m).addcmul_(i, g.sub_(0.5), value=4.0)
        if self.clip is not None:
            m.clamp_(-2.0 * self.clip, 2.0 * self.clip)
        torch.mul(torch.sigmoid(m, out=q).sub_(0.5), o, out=h)

    def derivatives(
        self, gates: torch.Tensor, kept: Sequence[torch.Tensor], before: torch.Tensor, by_product: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """
        At each row, given the memory before it, fills `by_product` with the derivatives of the memory or the output by
        the products, in the shape of the gates. The result has the derivatives of the output by the memory, and of the
        memory by the one before; with a clip, also the memory.
        """
        i, f, g, o = torch.split(gates, before.size(-1), -1)[:4]
        # The derivative of the logistic function, which is wrong only for g.
        torch.addcmul(gates, gates, gates, value=-1.0, out=by_product)
        by_i, by_f, by_g, by_o = torch.split(by_product, before.size(-1), -1)[:4]
        by_i.mul_(g).mul_(4.0)
        by_f.mul_(before)
        torch.mul(g, g, out=by_g).sub_(0.25).mul_(i).mul_(-4.0)
        by_o.mul_(kept[1])
        by_memory = kept[1].square().sub_(0.25).mul_(o).neg_()
        return (by_memory, f) if self.clip is None else (by_memory, f, kept[0])

    def backward(
        self,
        d_output: torch.Tensor,
        d_previous: torch.Tensor | None,
        d_memory: torch.Tensor,
        by_product: torch.Tensor,
        *derivatives: torch.Tensor,
    ) -> None:
        """
        Turns the `derivatives` at some rows, of shape `(..., n_blocks, dim)` and `(..., dim)`, into the gradient of the
        products, and the gradient of the memory after the step into that before. A cell without a separate memory adds
        to the gradient of the previous output instead, if there is one.
        """
        by_memory, f, *memory = derivatives
        d_memory.addcmul_(d_output, by_memory)
        if self.clip is not None:
            # The derivative of the clip, in one pass.
            bounds = -2.0 * self.clip, 2.0 * self.clip
            torch.ops.aten.hardtanh_backward.grad_input(d_memory, *memory, *bounds, grad_input=d_memory)
        by_product[..., :3, :].mul_(d_memory.unsqueeze(-2))
        by_product[..., 3:, :].mul_(d_output.unsqueeze(-2))
        d_memory.mul_(f)
