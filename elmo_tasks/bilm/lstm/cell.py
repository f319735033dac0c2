"""
The LSTM cell of the biLM and of the task models: one step, its derivatives, and what computes it on a device.

On a CPU, a logistic function `s` costs a sixth of a hyperbolic tangent, so all cells compute halves of the latter:
`tanh(x) / 2 = s(2 x) - 1/2`. The factors of 2 are multiplied into the weights in advance, which is exact: products `z`
are doubled for the candidates, and outputs are half the usual ones. Products are in blocks of `dim`, and become the
gates in place.
"""

from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch

from elmo_tasks.bilm.kernels.fused_cell import FusedSteps, has_fused_cell
from elmo_tasks.bilm.kernels.packed_linear import IS_GPU

__all__ = ["Cell", "CellGradient", "LstmCell", "LstmGates", "Saved", "TorchSteps", "steps_on"]

# On a CPU, the gradient of the cell runs over blocks of about this many gates: 1 MB of float32. torch does not divide
# smaller ones among threads; for larger ones, no gain was measured.
_GATES_AT_ONCE = 2**18

T = TypeVar("T")


class LstmGates(NamedTuple, Generic[T]):
    """The blocks of the products of an LSTM: input gate, forget gate, candidate, output gate."""

    i: T
    f: T
    g: T
    o: T


class LstmValues(NamedTuple):
    """What `LstmCell.forward` fills, in its terms: `m`, `q` and `h`."""

    memory: torch.Tensor
    squashed: torch.Tensor
    output: torch.Tensor


class LstmDerivatives(NamedTuple):
    """At each word, of the output by the memory, and of the memory by the one before; and the memory."""

    output_by_memory: torch.Tensor
    memory_by_previous: torch.Tensor
    memory: torch.Tensor


class Cell:
    """What `run_layer` needs of a cell; `LstmCell` describes the methods."""

    gates: ClassVar[Any]
    """A named tuple of the blocks of the products. The last ones include products with the words."""
    values: ClassVar[Any]
    """A named tuple of what `forward` fills for the backward pass: the memory is the first, the output the last."""
    scales: ClassVar[Any]
    """By how much the usual products of each block are multiplied."""
    logistic: ClassVar[slice]
    """The blocks that are replaced by their logistic function before `forward`."""
    start: ClassVar[float]
    """The memory and the output before the first word; added to all outputs."""

    def blocks(self, products: torch.Tensor) -> Any:
        """Named views of products, or of what they became: shape `(..., dim)`, each."""
        return self.gates(*products.chunk(len(self.gates._fields), -1))


class LstmCell(Cell):
    """
    `torch.nn.LSTM`, with twice its memory:

        i, f, g, o = s(z_i), s(z_f), s(z_g) - 1/2, s(z_o)
        m_t = f * m_{t-1} + 4 i g
        q_t = s(m_t) - 1/2
        h_t = o * q_t

    `clip` is the largest magnitude of the usual memory. Clipped values get no gradient.
    """

    gates: ClassVar[Any] = LstmGates
    values: ClassVar[Any] = LstmValues
    scales: ClassVar[Any] = LstmGates(i=1.0, f=1.0, g=2.0, o=1.0)
    logistic = slice(0, 4)
    start = 0.0

    def __init__(self, clip: float | None = None) -> None:
        self.clip = clip

    def forward(self, before: torch.Tensor, gates: Any, values: LstmValues) -> None:
        """
        Fills `values` from the memory before and the gates, of shape `(n_directions, n_rows, dim)` each. The new memory
        may be the same tensor as the one before, and `squashed` as `output`.
        """
        memory, squashed, output = values
        torch.mul(before, gates.f, out=memory).addcmul_(gates.i, gates.g.sub_(0.5), value=4.0)
        if self.clip is not None:
            memory.clamp_(-2.0 * self.clip, 2.0 * self.clip)
        torch.mul(torch.sigmoid(memory, out=squashed).sub_(0.5), gates.o, out=output)

    def derivatives(
        self, gates: torch.Tensor, values: LstmValues, before: torch.Tensor, by_products: torch.Tensor
    ) -> LstmDerivatives:
        """
        At all words, given the memories before them, fills `by_products` with the derivatives of the memory or the
        output by the products, in the shape of the gates.
        """
        gate, by = self.blocks(gates), self.blocks(by_products)
        # The derivative of the logistic function, which is wrong only for g.
        torch.addcmul(gates, gates, gates, value=-1.0, out=by_products)
        by.i.mul_(gate.g).mul_(4.0)
        by.f.mul_(before)
        torch.mul(gate.g, gate.g, out=by.g).sub_(0.25).mul_(gate.i).mul_(-4.0)
        by.o.mul_(values.squashed)
        output_by_memory = values.squashed.square().sub_(0.25).mul_(gate.o).neg_()
        return LstmDerivatives(output_by_memory, gate.f, values.memory)

    def backward(
        self,
        d_output: torch.Tensor,
        d_previous: torch.Tensor | None,
        d_memory: torch.Tensor,
        by_products: torch.Tensor,
        by: LstmDerivatives,
    ) -> None:
        """
        Turns the derivatives at a step, `by_products` of shape `(..., n_blocks, dim)` and `by`, into the gradient of
        the products, and the gradient of the memory after the step into the one before. A cell without a separate
        memory adds to the gradient of the previous output instead, if there is one.
        """
        d_memory.addcmul_(d_output, by.output_by_memory)
        if self.clip is not None:
            # The derivative of the clip, in one pass.
            bounds = -2.0 * self.clip, 2.0 * self.clip
            torch.ops.aten.hardtanh_backward.grad_input(d_memory, by.memory, *bounds, grad_input=d_memory)
        by_products[..., :3, :].mul_(d_memory.unsqueeze(-2))
        by_products[..., 3:, :].mul_(d_output.unsqueeze(-2))
        d_memory.mul_(by.memory_by_previous)


class Saved(NamedTuple):
    """What the backward pass needs of the biLM's cells at each word: shape `(n_lstms, n_rows, ...)`."""

    gates: torch.Tensor
    """They may be less precise than the memory."""
    memory: torch.Tensor


class CellGradient(NamedTuple):
    """The backward pass of a step of the biLM's cells: shape `(n_lstms, n_rows, ...)`, or a tensor for each LSTM."""

    gates: torch.Tensor
    memory: torch.Tensor
    before: torch.Tensor
    """The memory before the step."""
    d_hidden: Any
    d_memory: torch.Tensor
    """Becomes the gradient of the memory before the step."""
    d_products: torch.Tensor
    """Filled."""
    hidden: torch.Tensor
    """Filled with the outputs of the cell, which the forward pass does not save."""


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

    def forward(self, products: Any, memory: torch.Tensor, saved: Saved | None = None) -> torch.Tensor:
        """
        The outputs of the cell, of shape `(n_lstms, n_rows, cell_dim)`, until the next call, from the products of each
        LSTM, of shape `(n_rows, 4 * cell_dim)`. Updates `memory`, and fills what is to be saved.
        """
        hidden, gates = self._hidden[:, : memory.size(1)], self._gates[:, : memory.size(1)]
        if saved is not None and saved.gates.dtype == memory.dtype:
            gates = saved.gates
        for product, gate in zip(products, gates, strict=True):
            torch.sigmoid(product.to(gate.dtype), out=gate)
        self._cell.forward(memory, self._cell.blocks(gates), LstmValues(memory, hidden, hidden))
        if saved is not None:
            if gates is not saved.gates:
                saved.gates.copy_(gates)
            saved.memory.copy_(memory)
        return hidden.to(self._dtype)

    def backward(self, step: CellGradient) -> None:
        """The gradient of a step. With one `d_hidden` per LSTM, runs in blocks that fit in the cache."""
        if isinstance(step.d_hidden, torch.Tensor):
            self._backward(step)
            return
        n_rows = max(1, _GATES_AT_ONCE // step.gates.size(-1))
        for of_lstm in zip(*step, strict=True):
            for rows in zip(*(part.unsqueeze(0).split(n_rows, 1) for part in of_lstm), strict=True):
                self._backward(CellGradient(*rows))

    def _backward(self, step: CellGradient) -> None:
        dtype = step.memory.dtype
        gates, d_hidden = step.gates.to(dtype), step.d_hidden.to(dtype)
        squashed = step.memory.sigmoid().sub_(0.5)
        torch.mul(squashed, self._cell.blocks(gates).o, out=step.hidden)
        by_products = step.d_products if step.d_products.dtype == dtype else torch.empty_like(gates)
        values = LstmValues(step.memory, squashed, step.hidden)
        by = self._cell.derivatives(gates, values, step.before, by_products)
        in_blocks = by_products.view(*by_products.shape[:-1], 4, -1)
        self._cell.backward(d_hidden, None, step.d_memory, in_blocks, by)
        step.d_products.copy_(by_products)


def steps_on(clip: float | None, memory: torch.Tensor, dtype: torch.dtype) -> TorchSteps | FusedSteps:
    """The steps for the device of `memory`."""
    is_gpu = IS_GPU.get(memory.device.type) and memory.dtype == torch.float32
    is_fused = is_gpu and has_fused_cell(memory.device)
    return (FusedSteps if is_fused else TorchSteps)(clip, memory, dtype)
