"""
The LSTM cell of the biLM and of the task models: one step, its derivatives, and what computes it on a device.

On a CPU, a logistic function `s` costs a sixth of a hyperbolic tangent, so all cells compute halves of the latter:
`tanh(x) / 2 = s(2 x) - 1/2`. The factors of 2 are multiplied into the weights in advance, which is exact: products `z`
are doubled for the candidates, and outputs are half the usual ones. Products are in blocks of `dim`, and become the
gates in place.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from elmo_tasks.bilm.kernels.fused_cell import FusedSteps, has_fused_cell
from elmo_tasks.bilm.kernels.packed_linear import STACKED_ON

__all__ = ["Cell", "LstmCell", "TorchSteps", "steps_on"]

# On a CPU, the gradient of the cell runs over blocks of about this many gates: 1 MB of float32. torch does not divide
# smaller ones among threads; for larger ones, no gain was measured.
_GATES_AT_ONCE = 2**18


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


class TorchSteps:
    """
    Steps of `LstmCell(clip)` by torch's operators. `memory`, of shape `(n_lstms, n_sentences, cell_dim)`, is the one
    before the first words; `dtype` is the type of the outputs.
    """

    def __init__(self, clip: float | None, memory: torch.Tensor, dtype: torch.dtype) -> None:
        self._cell, self._dtype = LstmCell(clip), dtype
        # On a CPU, allocating memory for the gates of a step takes longer than computing them. The memory accumulates
        # over a sentence, so it is at least float32. So are the gates, even if the products are not: most are near a
        # half, and rounding them would cause the largest error.
        self._gates, self._hidden = memory.new_empty(*memory.shape[:2], 4 * memory.size(-1)), torch.empty_like(memory)

    def forward(self, products: Any, memory: torch.Tensor, *kept: torch.Tensor) -> torch.Tensor:
        """
        The outputs of the cell, of shape `(n_lstms, n_rows, cell_dim)`, until the next call, from the products of each
        LSTM, of shape `(n_rows, 4 * cell_dim)`. Updates `memory`, and fills the two tensors to keep for `backward`, if
        there are any: the gates, which may be less precise than the memory, and the memories.
        """
        hidden, gates_now = self._hidden[:, : memory.size(1)], self._gates[:, : memory.size(1)]
        if kept and kept[0].dtype == memory.dtype:
            gates_now = kept[0]
        for product, gate in zip(products, gates_now, strict=True):
            torch.sigmoid(product.to(gate.dtype), out=gate)
        self._cell.forward(memory, *gates_now.chunk(4, -1), memory, hidden, hidden)
        if kept:
            if gates_now is not kept[0]:
                kept[0].copy_(gates_now)
            kept[1].copy_(memory)
        return hidden.to(self._dtype)

    def backward(self, *parts: Any) -> None:
        """
        The gradient of a step, from `gates, memory, before, d_hidden, d_memory, d_products, hidden`, each of shape
        `(n_lstms, n_rows, ...)`: turns `d_memory` into the gradient of the memory before the step, and fills
        `d_products`, and `hidden` with the outputs of the cell, which the forward pass does not keep. With one
        `d_hidden` per LSTM, runs in blocks that fit in the cache.
        """
        gates, memory, before, d_hidden, d_memory, d_products, hidden = parts
        if not isinstance(d_hidden, torch.Tensor):
            n_rows = max(1, _GATES_AT_ONCE // gates.size(-1))
            for of_lstm in zip(*parts, strict=True):
                for rows in zip(*(part.unsqueeze(0).split(n_rows, 1) for part in of_lstm), strict=True):
                    self.backward(*rows)
            return
        dtype = memory.dtype
        gates, d_hidden = gates.to(dtype), d_hidden.to(dtype)
        squashed = memory.sigmoid().sub_(0.5)
        torch.mul(squashed, gates.chunk(4, -1)[3], out=hidden)
        by_product = d_products if d_products.dtype == dtype else torch.empty_like(gates)
        others = self._cell.derivatives(gates, (memory, squashed), before, by_product)
        self._cell.backward(d_hidden, None, d_memory, by_product.view(*by_product.shape[:-1], 4, -1), *others)
        d_products.copy_(by_product)


def steps_on(clip: float | None, memory: torch.Tensor, dtype: torch.dtype) -> TorchSteps | FusedSteps:
    """The steps for the device of `memory`."""
    is_gpu = STACKED_ON.get(memory.device.type) and memory.dtype == torch.float32
    is_fused = is_gpu and has_fused_cell(memory.device)
    return (FusedSteps if is_fused else TorchSteps)(clip, memory, dtype)
