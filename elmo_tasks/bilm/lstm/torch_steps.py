"""The steps of the biLM's LSTM cell by torch's operators, and the tensors of a step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import torch

from elmo_tasks.bilm.lstm.cell import LstmCell, LstmValues

__all__ = ["SavedSteps", "StepGradient", "TorchSteps"]

# On a CPU, the gradient of the cell runs over blocks of about this many gates: 1 MB of float32.
# torch does not divide smaller ones among threads; for larger ones, no gain was measured.
GATES_AT_ONCE = 2**18


@dataclass(slots=True)
class SavedSteps:
    """What the backward pass needs of the cells at each word: shape `(n_lstms, n_rows, ...)`."""

    gates: torch.Tensor
    """They may be less precise than the memory."""
    memory: torch.Tensor

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(self.gates[:, rows], self.memory[:, rows])


@dataclass(slots=True, kw_only=True)
class StepGradient:
    """The tensors of a step in the backward pass: shape `(n_lstms, n_rows, ...)`."""

    gates: torch.Tensor
    memory: torch.Tensor
    memory_before: torch.Tensor
    """The memory before the step."""
    d_hidden: torch.Tensor | Sequence[torch.Tensor]
    """The gradient of the cell's outputs; on a CPU, a tensor for each LSTM."""
    d_memory: torch.Tensor
    """Becomes the gradient of the memory before the step."""
    d_products: torch.Tensor
    """Filled with the gradient of the products."""
    hidden: torch.Tensor
    """Filled with the outputs of the cell, which the forward pass does not save."""


class TorchSteps:
    """
    Steps of `LstmCell(clip)`. `memory`, of shape `(n_lstms, n_sentences, cell_dim)`, is the memory
    before the first words; `dtype` is the type of the outputs.
    """

    def __init__(self, clip: float | None, memory: torch.Tensor, dtype: torch.dtype) -> None:
        self._cell = LstmCell(clip)
        self._dtype = dtype
        # On a CPU, allocating memory for the gates of a step takes longer than computing them. The
        # memory accumulates over a sentence, so it is at least float32. So are the gates, even if
        # the products are not: most are near a half, and rounding them would cause the largest
        # error.
        n_lstms, n_sentences, cell_dim = memory.shape
        self._gates = memory.new_empty(n_lstms, n_sentences, 4 * cell_dim)
        self._hidden = torch.empty_like(memory)

    def forward(
        self,
        products: torch.Tensor | Sequence[torch.Tensor],
        memory: torch.Tensor,
        saved: SavedSteps | None = None,
    ) -> torch.Tensor:
        """
        Computes the outputs of the cell, of shape `(n_lstms, n_rows, cell_dim)`, from the products
        of each LSTM, of shape `(n_rows, 4 * cell_dim)`. Updates `memory`, and fills `saved`. The
        next call may overwrite the result.
        """
        n_rows = memory.size(1)
        hidden = self._hidden[:, :n_rows]
        gates = self._gates[:, :n_rows]
        saves_in_place = saved is not None and saved.gates.dtype == memory.dtype
        if saved is not None and saves_in_place:
            gates = saved.gates
        for product, gate in zip(products, gates, strict=True):
            torch.sigmoid(product.to(gate.dtype), out=gate)
        values = LstmValues(memory=memory, squashed=hidden, output=hidden)
        self._cell.forward(memory, self._cell.blocks(gates), values)
        if saved is not None:
            if not saves_in_place:
                saved.gates.copy_(gates)
            saved.memory.copy_(memory)
        return hidden.to(self._dtype)

    def backward(self, step: StepGradient) -> None:
        """
        The gradient of a step. With one `d_hidden` per LSTM, runs in blocks that fit in the cache.
        """
        if isinstance(step.d_hidden, torch.Tensor):
            self._backward(step, step.d_hidden)
            return
        for block, d_hidden in _blocks_in_cache(step, step.d_hidden):
            self._backward(block, d_hidden)

    def _backward(self, step: StepGradient, d_hidden: torch.Tensor) -> None:
        dtype = step.memory.dtype
        gates = step.gates.to(dtype)
        squashed = step.memory.sigmoid().sub_(0.5)
        torch.mul(squashed, self._cell.blocks(gates).o, out=step.hidden)
        partials = step.d_products
        if partials.dtype != dtype:
            partials = torch.empty_like(gates)
        values = LstmValues(memory=step.memory, squashed=squashed, output=step.hidden)
        derivatives = self._cell.derivatives(gates, values, step.memory_before, partials)
        # Shape: (n_lstms, n_rows, 4, cell_dim)
        partials_of_blocks = partials.view(*partials.shape[:-1], 4, -1)
        self._cell.backward(
            d_hidden.to(dtype), None, step.d_memory, partials_of_blocks, derivatives
        )
        step.d_products.copy_(partials)


def _blocks_in_cache(
    step: StepGradient, d_hidden: Sequence[torch.Tensor]
) -> Iterator[tuple[StepGradient, torch.Tensor]]:
    """
    Blocks of the rows of each LSTM, of shape `(1, n_rows, ...)`, with the gradient of their
    outputs.
    """
    n_rows = max(1, GATES_AT_ONCE // step.gates.size(-1))
    for lstm, d_hidden_of_lstm in enumerate(d_hidden):
        for start in range(0, step.gates.size(1), n_rows):
            block = (slice(lstm, lstm + 1), slice(start, start + n_rows))
            d_hidden_of_block = d_hidden_of_lstm[block[1]].unsqueeze(0)
            gradient = StepGradient(
                gates=step.gates[block],
                memory=step.memory[block],
                memory_before=step.memory_before[block],
                d_hidden=d_hidden_of_block,
                d_memory=step.d_memory[block],
                d_products=step.d_products[block],
                hidden=step.hidden[block],
            )
            yield gradient, d_hidden_of_block
