"""The forward pass over packed sentences, step by step, in inference and in training."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from elmo_tasks.bilm.lstm.projected_lstm import ScaledParameters
from elmo_tasks.bilm.lstm.step_chunks import Products, clipped_into, split_steps, step_chunks
from elmo_tasks.bilm.lstm.torch_steps import SavedSteps, TorchSteps
from elmo_tasks.bilm.lstm.triton_steps import TritonSteps, has_triton_steps
from elmo_tasks.bilm.packed_linear import IS_GPU, StackedLinear

__all__ = [
    "ROWS_AT_ONCE",
    "Clips",
    "Recurrence",
    "cell_steps",
    "input_side_of",
    "projection_of",
    "recurrent_side_of",
    "run_with_input_side",
]

# The input side of several steps is one product of about this many rows: enough to be fast (on a
# CPU, more would not fit in the cache), and few enough for sentences of any length.
ROWS_AT_ONCE = {"cpu": 128}


class Clips(NamedTuple):
    """The largest magnitudes of the memory and of the output."""

    memory: float | None
    output: float | None


def input_side_of(parameters: ScaledParameters, dtype: torch.dtype) -> StackedLinear:
    """The products with `W_x`, and the bias."""
    input_weight, _ = parameters.kernel.chunk(2, 1)
    return StackedLinear(input_weight.transpose(1, 2), parameters.bias, dtype=dtype)


def recurrent_side_of(parameters: ScaledParameters, dtype: torch.dtype) -> StackedLinear:
    """The products with `W_h`."""
    _, recurrent_weight = parameters.kernel.chunk(2, 1)
    return StackedLinear(recurrent_weight.transpose(1, 2), dtype=dtype)


def projection_of(parameters: ScaledParameters, dtype: torch.dtype) -> StackedLinear:
    """The products with `P`."""
    return StackedLinear(parameters.projection.transpose(1, 2), dtype=dtype)


def cell_steps(
    clip: float | None, memory: torch.Tensor, dtype: torch.dtype
) -> TorchSteps | TritonSteps:
    """What computes the cell on the device of `memory`."""
    is_gpu = IS_GPU.get(memory.device.type) and memory.dtype == torch.float32
    if is_gpu and has_triton_steps(memory.device):
        return TritonSteps(clip, memory, dtype)
    return TorchSteps(clip, memory, dtype)


class Recurrence:
    """
    The cells and the projections of LSTMs, from step to step, starting with zero. Fills `outputs`,
    of shape `(n_lstms, n_words, projection_dim)`, and `saved`.
    """

    def __init__(
        self,
        outputs: torch.Tensor,
        projection: StackedLinear,
        batch_sizes: Sequence[int],
        clips: Clips,
        saved: SavedSteps | None = None,
    ) -> None:
        self.batch_sizes = batch_sizes
        self.outputs = outputs
        self._projection = projection
        self._clip = clips.output
        self._saved = saved
        n_lstms, _, dim = outputs.shape
        n_sentences = batch_sizes[0]
        # The memory is a sum over the sentence, so it is at least float32.
        memory_type = torch.promote_types(outputs.dtype, torch.float32)
        # Shape: (n_lstms, n_sentences, cell_dim)
        self._memory = outputs.new_zeros(
            n_lstms, n_sentences, projection.input_dim, dtype=memory_type
        )
        # Shape: (n_lstms, n_sentences, projection_dim)
        self._previous = outputs.new_zeros(n_lstms, n_sentences, dim)
        self._cell = cell_steps(clips.memory, self._memory, outputs.dtype)

    def previous(self, n_rows: int) -> torch.Tensor:
        """
        The outputs at the previous words of a step: shape `(n_lstms, n_rows, projection_dim)`.
        """
        return self._previous[:, :n_rows]

    def step(self, rows: slice, products: Products) -> None:
        """
        Computes a step: its packed words are `rows`, and `products` are their products with the
        LSTM's `kernel`, of shape `(n_rows, 4 * cell_dim)` for each LSTM.
        """
        saved = None if self._saved is None else self._saved[rows]
        memory = self._memory[:, : rows.stop - rows.start]
        # Shape: (n_lstms, n_rows, cell_dim)
        hidden = self._cell.forward(products, memory, saved)
        # Shape: (n_lstms, n_rows, projection_dim)
        outputs = self.outputs[:, rows]
        clipped_into(outputs, self._projection(hidden), self._clip)
        self._previous = outputs


def run_with_input_side(
    inputs: torch.Tensor,
    input_side: StackedLinear,
    recurrent_side: StackedLinear,
    recurrence: Recurrence,
) -> None:
    """
    Runs LSTMs over sentences: the input side of several steps in one product, the recurrent side in
    each step.
    """
    n_rows_at_once = ROWS_AT_ONCE.get(inputs.device.type, 4096)
    for chunk in step_chunks(recurrence.batch_sizes, n_rows_at_once):
        input_products = split_steps(input_side(inputs[:, chunk.rows]), chunk.sizes)
        for rows, input_product in zip(chunk.rows_of_steps(), input_products, strict=True):
            previous = recurrence.previous(rows.stop - rows.start)
            recurrence.step(rows, recurrent_side(previous, input_product))
