"""The steps of the biLM's LSTM cell, with the gates that its gradient needs: the part that depends on the device."""

from typing import Any

import torch

from elmo_tasks.bilm.kernels.fused_cell import FusedSteps, has_fused_cell
from elmo_tasks.bilm.kernels.packed_linear import STACKED_ON
from elmo_tasks.bilm.lstm.cell import LstmCell

__all__ = ["TorchSteps", "steps_on"]

# On a CPU, the gradient of the cell runs over blocks of about this many gates: 1 MB of float32. torch does not divide
# smaller ones among threads; for larger ones, no gain was measured.
_GATES_AT_ONCE = 2**18


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
