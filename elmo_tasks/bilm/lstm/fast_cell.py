"""The step of `cell.py` and its gradient, by the fastest implementation that works here: Triton's kernels, or torch."""

import logging
import os
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import torch

from elmo_tasks.bilm.lstm import cell

__all__ = ["PLAIN_PATH", "first_difference", "has_triton", "implementation", "is_switched_on", "uses_triton"]

logger = logging.getLogger(__name__)

PLAIN_PATH = "ELMO_TASKS_CUDA_GRAPHS"
"""The variable that, with the value 0, leaves CUDA with torch's own kernels alone."""

# For each GPU and type of the products whether the kernels passed their test. Threads that come first at the same time
# test twice and agree.
_VERDICTS: dict[tuple[torch.device, torch.dtype], bool] = {}
_WARNED: dict[str, object] = {}
# Fewer units than a block of the kernels, and more than one; several rows, among others.
_TESTED_DIMS = (5, 300)


def implementation(memory: torch.Tensor, dtype: torch.dtype) -> ModuleType:
    """
    The module whose `cell_forward` and `cell_backward` compute the step: `triton_cell`, or `cell`.

    # Parameters

    memory, dtype
        See `uses_triton`.
    """
    if uses_triton(memory, dtype):
        from elmo_tasks.bilm.lstm import triton_cell

        return triton_cell
    return cell


def is_switched_on() -> bool:
    """Whether CUDA may compute with recorded graphs and with Triton's kernels."""
    return os.environ.get(PLAIN_PATH) != "0"


def uses_triton(memory: torch.Tensor, dtype: torch.dtype) -> bool:
    """
    Whether Triton's kernels compute the step. The first call for a GPU and a type compares them with torch, which takes
    a second if they were never compiled on this machine; the first failure of a process is logged as a warning. Where
    Triton is not installed, torch computes the step, which is no failure.

    # Parameters

    memory
        The memory of the LSTMs.
    dtype
        The type of the products.
    """
    if not memory.is_cuda or memory.dtype != torch.float32 or not is_switched_on():
        return False
    key = memory.device, dtype
    verdict = _VERDICTS.get(key)
    if verdict is None:
        # Kernels cannot be compiled while a graph is recorded; ours are compiled before.
        if torch.cuda.is_current_stream_capturing():
            return False
        verdict = _VERDICTS.setdefault(key, has_triton() and _passes(*key))
    return verdict


def has_triton() -> bool:
    """Whether Triton is installed: it comes with torch for CUDA, but not on every system."""
    return find_spec("triton") is not None


def _passes(device: torch.device, dtype: torch.dtype) -> bool:
    try:
        # Tensors made in inference mode could not be compared in place outside of it.
        with torch.inference_mode(False), torch.no_grad(), torch.autocast("cuda", enabled=False):
            failure = first_difference(device, dtype)
    except Exception as error:  # A missing compiler, a folder that cannot be written, a driver that is too old, ...
        failure = f"{type(error).__name__}: {str(error).strip() or 'without a message'}".splitlines()[0]
    if failure is None:
        return True
    this = object()
    if _WARNED.setdefault("triton", this) is this:
        logger.warning(
            "the LSTM's kernels in Triton do not work on %s, and torch's replace them: vectors are the same up to "
            "rounding, but computed more slowly (%s; %s). `python -m elmo_tasks check-gpu` shows more",
            device,
            failure,
            dtype,
        )
    return False


def first_difference(device: torch.device, dtype: torch.dtype) -> str | None:
    """Where Triton's kernels differ from torch on a device, in words; `None` if they do not."""
    from elmo_tasks.bilm.lstm import triton_cell

    # A digit of the result.
    tolerance = 2.0 ** (-7 if dtype.itemsize < 4 else -16)
    for cell_dim, clip in zip(_TESTED_DIMS, (None, 0.5), strict=True):
        found = []
        for step in (triton_cell, cell):
            numbers = _numbers(device, cell_dim)
            products, gates, d_products = next(numbers).to(dtype), next(numbers), next(numbers).to(dtype)
            memory, previous, d_memory, d_hidden = (next(numbers)[..., :cell_dim].contiguous() for _ in range(4))
            hidden = step.cell_forward(products, memory, clip, dtype=dtype, gates=gates)
            d_previous = step.cell_backward(
                gates, memory, previous, d_hidden.to(dtype), d_memory, clip, d_products=d_products
            )
            found.append(
                {
                    "hidden": hidden,
                    "memory": memory,
                    "gates": gates,
                    "d_memory": d_previous,
                    "d_products": d_products,
                }
            )
        for name, value in found[1].items():
            ours, theirs = found[0][name].float(), value.float()
            difference = float(((ours - theirs).abs() / (1.0 + theirs.abs())).max())
            # Also where it is not a number.
            if not difference <= tolerance:
                return f"{name} of {cell_dim} units differs by {difference:.1e}"
    return None


def _numbers(device: torch.device, cell_dim: int) -> Iterator[torch.Tensor]:
    """Tensors of shape `(2, 3, 4 * cell_dim)` with values from -1.5 to 1.5, without drawing random numbers."""
    index = torch.arange(2 * 3 * 4 * cell_dim, dtype=torch.float32).view(2, 3, -1)
    seed = 1.0
    while True:
        yield (1.5 * torch.sin(seed * (index + seed))).to(device)
        seed += 1.0
