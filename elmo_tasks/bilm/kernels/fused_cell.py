"""
The step of the biLM's LSTM cell in one kernel, instead of about ten forward and twenty backward.

Triton compiles the kernels on first use. They are tested once per process; without Triton, or if they fail, the caller
uses torch's operators.
"""

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

__all__ = ["FusedSteps", "has_fused_cell"]

logger = logging.getLogger(__name__)

# Units per program: at most the largest number of threads of a block.
_UNITS = 1024


class FusedSteps:
    """`TorchSteps` with one kernel per call, for a float32 memory. `memory` is the one before the first words."""

    def __init__(self, clip: float | None, memory: torch.Tensor, dtype: torch.dtype) -> None:
        from elmo_tasks.bilm.kernels import triton_cell

        self._kernels: Any = triton_cell
        self._hidden = torch.empty_like(memory, dtype=dtype)
        cell_dim = memory.size(-1)
        # A power of two.
        block = min(_UNITS, 1 << (cell_dim - 1).bit_length())
        self._n_lstms, self._n_blocks = len(memory), -(-cell_dim // block)
        # Twice the bound of the usual memory, as in `LstmCell`.
        bound = 0.0 if clip is None else 2.0 * clip
        self._settings = {"bound": bound, "cell_dim": cell_dim, "is_clipped": clip is not None, "block": block}

    def forward(self, products: Any, memory: torch.Tensor, saved: Sequence[torch.Tensor] | None = None) -> torch.Tensor:
        """See `TorchSteps.forward`."""
        hidden = self._hidden[:, : memory.size(1)]
        # Without gates to save, any tensors will do.
        tensors = _stacked(products), memory, hidden, *(saved or (memory, memory))
        self._run(self._kernels.forward, tensors, is_kept=saved is not None)
        return hidden

    def backward(self, step: Sequence[Any]) -> None:
        """See `TorchSteps.backward`; the parts of a step are in the order of `CellGradient`."""
        self._run(self._kernels.backward, [_stacked(part) for part in step])

    def _run(self, kernel: Any, tensors: Sequence[Any], **settings: bool) -> None:
        grid = tensors[1].size(1), self._n_lstms, self._n_blocks
        kernel[grid](*tensors, *(tensor.stride(0) for tensor in tensors), **self._settings, **settings)


def _stacked(each: torch.Tensor | Sequence[torch.Tensor]) -> torch.Tensor:
    return each if isinstance(each, torch.Tensor) else torch.stack(list(each))


@cache
def has_fused_cell(device: torch.device) -> bool:
    """Whether the kernels run on this device, a GPU, and are correct."""
    try:
        with torch.inference_mode(False), torch.autocast(device.type, enabled=False):
            if is_correct(device):
                return True
        reason = "wrong results"
    # Triton has its own errors, and needs a C compiler.
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
    logger.warning("the kernels of the LSTM cell do not work (%s): torch's operators replace them", reason)
    return False


def is_correct(device: torch.device) -> bool:
    """Whether a step on this device has the output, the memory and the gradients of the formulas in `LstmCell`."""
    values = torch.linspace(-3.0, 3.0, 7 * 2 * 3 * 37, device=device).view(7, 2, 3, 37)
    products, before = torch.cat([*values[:4]], -1), values[4].flip(-1)
    d_hidden, d_memory = values[5:].clone()
    with torch.enable_grad():
        products.requires_grad_(), before.requires_grad_()
        i, f, g, o = products.sigmoid().chunk(4, -1)
        memory = (before * f + 4.0 * i * (g - 0.5)).clamp(-2.0, 2.0)
        hidden = o * (memory.sigmoid() - 0.5)
        gradients = torch.autograd.grad((hidden, memory), (products, before), (d_hidden, d_memory))
    with torch.no_grad(), torch.cuda.device_of(values):  # type: ignore[no-untyped-call]
        steps, computed = FusedSteps(1.0, before, before.dtype), before.clone()
        gates, memories, d_products, again = map(torch.empty_like, (products, before, products, before))
        units = steps.forward(products, computed, (gates, memories)).clone()
        steps.backward((gates, memories, before, d_hidden, d_memory, d_products, again))
    found, expected = (
        (units, again, computed, memories, d_products, d_memory),
        (hidden, hidden, memory, memory, *gradients),
    )
    return all(torch.allclose(ours, theirs, 0.0, 1e-5) for ours, theirs in zip(found, expected, strict=True))
