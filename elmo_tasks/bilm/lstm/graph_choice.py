"""The choice between recorded CUDA graphs and the plain loop over words."""

import logging

import torch

from elmo_tasks.bilm.lstm.cuda_graphs import GraphedRecurrence
from elmo_tasks.bilm.lstm.fast_cell import PLAIN_PATH, is_switched_on
from elmo_tasks.bilm.lstm.graph_pool import pool_of
from elmo_tasks.bilm.lstm.precision import tf32_set_to
from elmo_tasks.bilm.lstm.recurrence import LstmWeights, run_lstms

__all__ = ["first_difference", "graphs_are_used", "turn_off"]

logger = logging.getLogger(__name__)

# For each GPU and type whether graphs passed their test; `turn_off` changes all of a GPU. Threads that come first at
# the same time test twice and agree.
_VERDICTS: dict[tuple[torch.device, torch.dtype], bool] = {}
_OFF: set[torch.device] = set()
_WARNED: dict[str, object] = {}

# What graphs are tested with: input, memory and output of LSTMs, and the steps of two batches, of which the second one
# is replayed from the graphs of the first. Several numbers of rows, sentences that end within a graph, and one word.
_TESTED_DIMS = (8, 32, 16)
_TESTED_BATCHES = ([3, 3, 2, 2, 2, 2, 2, 2, 2, 1, 1], [3] * 9 + [1] * 9, [1])


def graphs_are_used(inputs: torch.Tensor) -> bool:
    """
    Whether LSTMs with these inputs, without gradients, are computed from recorded graphs. The first call for a GPU and
    a type records some small ones and compares their results with the plain loop, which takes milliseconds; the first
    failure of a process is logged as a warning.
    """
    if not inputs.is_cuda or not is_switched_on() or inputs.device in _OFF:
        return False
    # A caller who records a graph of their own gets the kernels in it; one graph cannot be recorded within another.
    if torch.cuda.is_current_stream_capturing():
        return False
    key = inputs.device, inputs.dtype
    verdict = _VERDICTS.get(key)
    if verdict is None:
        verdict = _VERDICTS.setdefault(key, _passes(*key))
    return verdict


def turn_off(device: torch.device, reason: str) -> None:
    """Uses no graphs on a GPU from now on, and frees their memory; the first call of a process logs a warning."""
    _OFF.add(device)
    pool_of(device).clear()
    this = object()
    if _WARNED.setdefault("graphs", this) is this:
        logger.warning(
            "CUDA graphs are not used on %s for the rest of this process, and kernels are started one by one: vectors "
            "are the same up to rounding, but small batches are computed several times more slowly (%s). `python -m "
            "elmo_tasks check-gpu` shows more; %s=0 omits the attempt",
            device,
            reason,
            PLAIN_PATH,
        )


def _passes(device: torch.device, dtype: torch.dtype) -> bool:
    try:
        failure = first_difference(device, dtype)
    except Exception as error:  # Whatever a driver raises, the plain loop may work.
        failure = f"{type(error).__name__}: {str(error).strip() or 'without a message'}".splitlines()[0]
    if failure is None:
        return True
    turn_off(device, f"{failure}; {dtype}")
    return False


def first_difference(device: torch.device, dtype: torch.dtype) -> str | None:
    """
    Where the outputs of recorded graphs differ from those of the plain loop, in words; `None` if they do not.

    # Raises

    `RecordingError`
        If a graph cannot be recorded.
    """
    tolerance = 2.0 ** (-5 if dtype.itemsize < 4 else -13)
    # Tensors made in inference mode could not be written to outside of it.
    with torch.inference_mode(False), torch.no_grad(), torch.autocast("cuda", enabled=False), tf32_set_to(False):
        input_dim, cell_dim, projection_dim = _TESTED_DIMS
        dims = (2, input_dim + projection_dim, 4 * cell_dim), (2, 4 * cell_dim), (2, cell_dim, projection_dim)
        kernel, bias, projection = (_numbers(seed, *shape).to(device) for seed, shape in enumerate(dims))
        weights = LstmWeights.of(kernel, bias, projection, 0.8, 1.5, dtype)
        graphed = GraphedRecurrence(weights, pool_of(device))
        for seed, batch_sizes in enumerate(_TESTED_BATCHES):
            inputs = _numbers(seed, 2, sum(batch_sizes), input_dim).to(device, dtype)
            output = inputs.new_zeros(2, batch_sizes[0], projection_dim)
            memory = inputs.new_zeros(2, batch_sizes[0], cell_dim, dtype=torch.promote_types(dtype, torch.float32))
            expected = run_lstms(weights, inputs, batch_sizes, output, memory)
            difference = float((graphed(inputs, batch_sizes).float() - expected.float()).abs().max())
            # Also where it is not a number.
            if not difference <= tolerance:
                return f"their results differ by {difference:.1e}"
    return None


def _numbers(seed: int, *shape: int) -> torch.Tensor:
    """Values from -0.7 to 0.7, without drawing random numbers."""
    index = torch.arange(torch.Size(shape).numel(), dtype=torch.float32)
    return 0.7 * torch.sin((seed + 1.3) * (index + 1.0)).reshape(shape)
