"""
The steps of the biLM's LSTM cell on a GPU: one kernel, instead of about ten forward and twenty
backward.

Triton compiles the kernels on first use. They are tested once per process; without Triton, or if
they fail, the caller uses torch's operators.
"""

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from elmo_tasks.bilm.lstm.torch_steps import SavedSteps, StepGradient

__all__ = ["TritonSteps", "has_triton_steps"]

logger = logging.getLogger(__name__)

# Units per program: at most the largest number of threads of a block.
_MAX_UNITS = 1024


class TritonSteps:
    """
    `TorchSteps` with one kernel per call, for a float32 memory. `memory` is the memory before the
    first words.
    """

    def __init__(self, clip: float | None, memory: torch.Tensor, dtype: torch.dtype) -> None:
        from elmo_tasks.bilm.lstm import triton_kernels

        self._kernels: Any = triton_kernels
        self._hidden = torch.empty_like(memory, dtype=dtype)
        n_lstms, _, cell_dim = memory.shape
        power_of_two = 1 << (cell_dim - 1).bit_length()
        block = min(_MAX_UNITS, power_of_two)
        self._n_lstms = n_lstms
        self._n_blocks = -(-cell_dim // block)
        self._settings = {
            # Twice the bound of the usual memory, as in `LstmCell`.
            "bound": 0.0 if clip is None else 2.0 * clip,
            "cell_dim": cell_dim,
            "is_clipped": clip is not None,
            "block": block,
        }

    def forward(
        self,
        products: torch.Tensor | Sequence[torch.Tensor],
        memory: torch.Tensor,
        saved: SavedSteps | None = None,
    ) -> torch.Tensor:
        """See `TorchSteps.forward`."""
        hidden = self._hidden[:, : memory.size(1)]
        if saved is None:
            # The kernel does not write gates then, so any tensors will do.
            saved_gates = saved_memory = memory
        else:
            saved_gates = saved.gates
            saved_memory = saved.memory
        tensors = [_stacked(products), memory, hidden, saved_gates, saved_memory]
        self._launch(self._kernels.forward, tensors, memory.size(1), is_kept=saved is not None)
        return hidden

    def backward(self, step: StepGradient) -> None:
        """See `TorchSteps.backward`."""
        tensors = [
            step.gates,
            step.memory,
            step.memory_before,
            _stacked(step.d_hidden),
            step.d_memory,
            step.d_products,
            step.hidden,
        ]
        self._launch(self._kernels.backward, tensors, step.memory.size(1))

    def _launch(
        self, kernel: Any, tensors: Sequence[torch.Tensor], n_rows: int, **settings: bool
    ) -> None:
        """
        Launches a kernel with the tensors, in the order of its parameters, and their strides
        between LSTMs.
        """
        strides = [tensor.stride(0) for tensor in tensors]
        grid = (n_rows, self._n_lstms, self._n_blocks)
        kernel[grid](*tensors, *strides, **self._settings, **settings)


def _stacked(tensors: torch.Tensor | Sequence[torch.Tensor]) -> torch.Tensor:
    """Shape `(n_lstms, n_rows, dim)`."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    return torch.stack(list(tensors))


@cache
def has_triton_steps(device: torch.device) -> bool:
    """Whether the kernels run on this device, a GPU, and are correct."""
    try:
        with torch.inference_mode(False), torch.autocast(device.type, enabled=False):
            if is_correct(device):
                return True
        reason = "wrong results"
    # Triton has its own errors, and needs a C compiler.
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
    logger.warning(
        "the kernels of the LSTM cell do not work (%s): torch's operators replace them", reason
    )
    return False


def is_correct(device: torch.device) -> bool:
    """
    Whether a step on this device has the output, the memory and the gradients of the formulas in
    `LstmCell`.
    """
    values = torch.linspace(-3.0, 3.0, 7 * 2 * 3 * 37, device=device).view(7, 2, 3, 37)
    products = torch.cat([values[0], values[1], values[2], values[3]], -1)
    before = values[4].flip(-1)
    d_hidden = values[5].clone()
    d_memory = values[6].clone()

    with torch.enable_grad():
        products.requires_grad_()
        before.requires_grad_()
        i, f, g, o = products.sigmoid().chunk(4, -1)
        memory = (before * f + 4.0 * i * (g - 0.5)).clamp(-2.0, 2.0)
        hidden = o * (memory.sigmoid() - 0.5)
        expected_d_products, expected_d_memory = torch.autograd.grad(
            (hidden, memory), (products, before), (d_hidden, d_memory)
        )

    with torch.no_grad(), torch.cuda.device_of(values):  # type: ignore[no-untyped-call]
        steps = TritonSteps(1.0, before, before.dtype)
        saved = SavedSteps(gates=torch.empty_like(products), memory=torch.empty_like(before))
        computed_memory = before.clone()
        computed_hidden = steps.forward(products, computed_memory, saved).clone()
        gradient = StepGradient(
            gates=saved.gates,
            memory=saved.memory,
            memory_before=before,
            d_hidden=d_hidden,
            d_memory=d_memory,
            d_products=torch.empty_like(products),
            hidden=torch.empty_like(before),
        )
        steps.backward(gradient)

    pairs = [
        (computed_hidden, hidden),
        (gradient.hidden, hidden),
        (computed_memory, memory),
        (saved.memory, memory),
        (gradient.d_products, expected_d_products),
        (gradient.d_memory, expected_d_memory),
    ]
    return all(torch.allclose(computed, expected, 0.0, 1e-5) for computed, expected in pairs)
