"""
The protocol of a recurrent cell, and the LSTM cell of the biLM and of the task models.

On a CPU, a logistic function `s` costs a sixth of a hyperbolic tangent, so all cells compute halves
of the latter: `tanh(x) / 2 = s(2 x) - 1/2`. The factors of 2 are multiplied into the weights in
advance, which is exact: products `z` are doubled for the candidates, and outputs are half the usual
ones. Products are in blocks of `dim`, and become the gates in place.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch

__all__ = ["Cell", "LstmCell", "LstmDerivatives", "LstmGates", "LstmValues"]

T = TypeVar("T")


class Cell(ABC):
    """
    One step of a recurrent network and its derivatives, for `modules/recurrent/recurrent_layer.py`.

    As an example, an Elman network has the output `tanh(z)`, where the products `z = W x + U h + b`
    are one block. Half of its output is `q = s(2 z) - 1/2`, so its cell has these attributes and
    methods (the test of this class runs them against `torch.nn.RNN`):

        gates = named tuple of one block, g        # what becomes of the products
        values = named tuple of one value, output  # memory and output are the same here
        scales = gates(g=2.0)                      # s reads 2 z
        logistic = slice(0, 1)                     # the layer computes g = s(2 z)
        start = 0.0                                # h before the first word

        forward:      output = g - 1/2
        derivatives:  partials.g = g (1 - g)    # d output / d (2 z)
        backward:     partials *= d_output      # becomes the gradient of the products
    """

    gates: ClassVar[Any]
    """
    A named tuple of the blocks of the products. The last ones include products with the words.
    """
    values: ClassVar[Any]
    """
    A named tuple of what `forward` fills for the backward pass: the memory is the first, the output
    the last.
    """
    scales: ClassVar[Any]
    """By how much the usual products of each block are multiplied."""
    logistic: ClassVar[slice]
    """The blocks that are replaced by their logistic function before `forward`."""
    start: ClassVar[float]
    """The memory and the output before the first word; added to all outputs."""

    def blocks(self, products: torch.Tensor) -> Any:
        """Named views of products, or of what they became: shape `(..., dim)` each."""
        return self.gates(*products.chunk(len(self.gates._fields), -1))

    @abstractmethod
    def forward(self, before: torch.Tensor, gates: Any, values: Any) -> None:
        """
        Fills `values` from the memory before the step and the gates, of shape
        `(n_directions, n_rows, dim)` each.
        """

    @abstractmethod
    def derivatives(
        self, gates: torch.Tensor, values: Any, before: torch.Tensor, partials: torch.Tensor
    ) -> Any:
        """
        Computes the derivatives at all words at once, given the memories `before` the words. Fills
        `partials`, in the shape of the gates, with the derivatives of the memory or of the output
        with respect to each product. Returns the other derivatives that `backward` needs, as a
        named tuple.
        """

    @abstractmethod
    def backward(
        self,
        d_output: torch.Tensor,
        d_previous: torch.Tensor | None,
        d_memory: torch.Tensor,
        partials: torch.Tensor,
        derivatives: Any,
    ) -> None:
        """
        Computes the gradient of one step, from what `derivatives` computed for it. Turns
        `partials`, of shape `(..., n_blocks, dim)`, into the gradient of the products, and
        `d_memory` from the gradient of the memory after the step into that of the memory before it.
        A cell without a separate memory adds to `d_previous`, the gradient of the previous output,
        instead; `d_previous` is `None` at the first word.
        """


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
    """
    At each word, the derivative of the output with respect to the memory, the derivative of the
    memory with respect to the previous memory, and the memory itself.
    """

    output_by_memory: torch.Tensor
    memory_by_previous: torch.Tensor
    memory: torch.Tensor


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
        """The new memory may be the same tensor as the one before, and `squashed` as `output`."""
        memory, squashed, output = values
        candidate = gates.g.sub_(0.5)
        torch.mul(before, gates.f, out=memory).addcmul_(gates.i, candidate, value=4.0)
        if self.clip is not None:
            memory.clamp_(-2.0 * self.clip, 2.0 * self.clip)
        torch.sigmoid(memory, out=squashed).sub_(0.5)
        torch.mul(squashed, gates.o, out=output)

    def derivatives(
        self,
        gates: torch.Tensor,
        values: LstmValues,
        before: torch.Tensor,
        partials: torch.Tensor,
    ) -> LstmDerivatives:
        gate = self.blocks(gates)
        partial = self.blocks(partials)
        # The derivative of the logistic function. It is wrong only for g, which is replaced below.
        torch.addcmul(gates, gates, gates, value=-1.0, out=partials)
        partial.i.mul_(gate.g).mul_(4.0)
        partial.f.mul_(before)
        torch.mul(gate.g, gate.g, out=partial.g).sub_(0.25).mul_(gate.i).mul_(-4.0)
        partial.o.mul_(values.squashed)
        output_by_memory = values.squashed.square().sub_(0.25).mul_(gate.o).neg_()
        return LstmDerivatives(output_by_memory, gate.f, values.memory)

    def backward(
        self,
        d_output: torch.Tensor,
        d_previous: torch.Tensor | None,
        d_memory: torch.Tensor,
        partials: torch.Tensor,
        derivatives: LstmDerivatives,
    ) -> None:
        d_memory.addcmul_(d_output, derivatives.output_by_memory)
        if self.clip is not None:
            # The derivative of the clip, in one pass.
            torch.ops.aten.hardtanh_backward.grad_input(
                d_memory,
                derivatives.memory,
                -2.0 * self.clip,
                2.0 * self.clip,
                grad_input=d_memory,
            )
        partials[..., :3, :].mul_(d_memory.unsqueeze(-2))
        partials[..., 3:, :].mul_(d_output.unsqueeze(-2))
        d_memory.mul_(derivatives.memory_by_previous)
