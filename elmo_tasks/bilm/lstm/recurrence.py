"""
The loop over words that runs LSTMs with a projected output, with or without gradients.

Several LSTMs of the same shape (the two directions of a layer) run in one loop, each over its own inputs. Sentences are
packed as in `torch.nn.utils.rnn.PackedSequence`: step by step, and within a step from the longest sentence to the
shortest, so padding costs nothing. `batch_sizes` is the number of sentences that have a word at each step.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.kernels.packed_linear import StackedLinear
from elmo_tasks.bilm.lstm.cell import cell_backward, cell_forward
from elmo_tasks.bilm.packing import rows_of_steps

__all__ = ["LstmWeights", "RecurrenceFunction", "run_lstms"]

# The input side of several steps is one product of about this many rows: enough to be fast (on a CPU, more would not
# fit in the cache), and few enough for sentences of any length.
_ROWS_AT_ONCE = {"cpu": 128}
# The gradients of the weights add up products of about this many rows, so only their gates need a gradient in memory.
_GRADIENT_ROWS_AT_ONCE = 1024


class LstmWeights:
    """
    The weights of LSTMs, ready for `run_lstms`: the products with `W_x` (and the bias), with `W_h`, and with `P`.
    `cell.py` explains why the candidates' products and the projection are doubled.

    They are made of `kernel`, of shape `(n_lstms, input_dim + projection_dim, 4 * cell_dim)`, `bias`, of shape
    `(n_lstms, 4 * cell_dim)`, including the forget gate's 1, and `projection`, of shape
    `(n_lstms, cell_dim, projection_dim)`; `dtype` is the type of the products.
    """

    def __init__(
        self,
        kernel: torch.Tensor,
        bias: torch.Tensor,
        projection: torch.Tensor,
        cell_clip: float | None,
        projection_clip: float | None,
        dtype: torch.dtype,
    ) -> None:
        input_dim = kernel.size(1) - projection.size(2)
        # Shape: (n_lstms, 4 * cell_dim, input_dim + projection_dim)
        weights = _with_doubled_candidates(kernel).transpose(1, 2)
        self.input_side = StackedLinear(weights[..., :input_dim], _with_doubled_candidates(bias), dtype=dtype)
        self.recurrent_side = StackedLinear(weights[..., input_dim:], dtype=dtype)
        self.projection = StackedLinear((2.0 * projection).transpose(1, 2), dtype=dtype)
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip


def run_lstms(
    weights: LstmWeights,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    output: torch.Tensor,
    memory: torch.Tensor,
    *,
    gates: torch.Tensor | None = None,
    memories: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    Runs LSTMs over sentences, without gradients: from packed inputs, of shape `(n_lstms, n_words, input_dim)`, to the
    outputs, packed like them and of the same type, of shape `(n_lstms, n_words, projection_dim)`.

    `output` and `memory` are the state before the first words, of shape `(n_lstms, batch_sizes[0], projection_dim)` and
    `(n_lstms, batch_sizes[0], cell_dim)`; `memory` is updated in place to its value after the last words. `gates` and
    `memories`, both or none, are filled with what the backward pass needs, packed like `inputs`; `gates` may be less
    precise than the memory.
    """
    dtype = inputs.dtype
    outputs = inputs.new_empty(*inputs.shape[:2], output.size(-1))
    # On a CPU, allocating memory for the gates of a step takes longer than computing them.
    scratch = memory.new_empty(*memory.shape[:2], 4 * memory.size(-1))
    for steps in _spans(batch_sizes, _ROWS_AT_ONCE.get(inputs.device.type, 4096)):
        first, last = steps[0][0].start, steps[-1][0].stop
        # Shape: (some words, 4 * cell_dim), for each LSTM
        input_sides = weights.input_side(inputs[:, first:last])
        for rows, n_now in steps:
            here = slice(rows.start - first, rows.stop - first)
            # Shape: (n_now, 4 * cell_dim), for each LSTM
            products = weights.recurrent_side(output[:, :n_now], _rows_of(input_sides, here))
            now = memory[:, :n_now]
            gates_now = scratch[:, :n_now]
            units = cell_forward(products, now, weights.cell_clip, dtype=dtype, gates=gates_now)
            if gates is not None and memories is not None:
                gates[:, rows] = gates_now
                memories[:, rows] = now
            # Shape: (n_lstms, n_now, projection_dim)
            output = outputs[:, rows]
            _write(weights.projection(units), weights.projection_clip, output)
    return outputs


class RecurrenceFunction(torch.autograd.Function):
    """
    `run_lstms` with gradients. The backward pass runs through the sentences in reverse for the cell's gradient and
    computes each weight's gradient in products over many words.

    `RecurrenceFunction.apply(inputs, kernel, bias, projection, output, memory, batch_sizes, cell_clip,
    projection_clip)` takes the tensors of `LstmWeights` and `run_lstms` and returns the outputs and the last memory.
    `inputs`, `output`, the products and the outputs have the same type; the memory keeps its own.
    """

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, inputs, kernel, bias, projection, output, memory, batch_sizes, cell_clip, projection_clip
    ):
        weights = LstmWeights(kernel, bias, projection, cell_clip, projection_clip, inputs.dtype)
        last_memory = memory.clone()
        shape, cell_dim = inputs.shape[:2], memory.size(-1)
        gates, memories = inputs.new_empty(*shape, 4 * cell_dim), memory.new_empty(*shape, cell_dim)
        outputs = run_lstms(weights, inputs, batch_sizes, output, last_memory, gates=gates, memories=memories)
        ctx.save_for_backward(inputs, kernel, projection, output, memory, outputs, gates, memories)
        ctx.settings = batch_sizes, cell_clip, projection_clip
        return outputs, last_memory

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: torch.Tensor, d_memory: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # The forward pass determined the types, so autocast must not change them here.
        with torch.autocast(d_outputs.device.type, enabled=False):
            return RecurrenceFunction._backward(ctx, d_outputs, d_memory)

    @staticmethod
    def _backward(ctx: Any, d_outputs: torch.Tensor, d_memory: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        inputs, kernel, projection, first_output, first_memory, outputs, gates, memories = ctx.saved_tensors
        batch_sizes, cell_clip, projection_clip = ctx.settings
        dtype, input_dim, cell_dim = inputs.dtype, inputs.size(-1), memories.size(-1)
        back_to_hidden = StackedLinear(2.0 * projection, dtype=dtype)
        back_to_output = StackedLinear(kernel[:, input_dim:], dtype=dtype)

        steps = list(rows_of_steps(batch_sizes))
        # The state before each step; that of the step before may have more rows.
        memories_before = [first_memory, *(memories[:, rows] for rows, _ in steps[:-1])]
        outputs_before = [first_output, *(outputs[:, rows] for rows, _ in steps[:-1])]
        outputs_read = torch.cat([part[:, :n_now] for part, (_, n_now) in zip(outputs_before, steps, strict=True)], 1)
        # What the kernel is multiplied by. Shape: (n_lstms, input_dim + projection_dim, n_words)
        kernel_inputs = torch.cat([inputs, outputs_read], -1).transpose(1, 2)

        from_inputs = kernel[:, :input_dim].to(dtype).transpose(1, 2)
        d_inputs, d_projected = torch.empty_like(inputs), d_outputs.to(dtype, copy=True)
        d_kernel, d_bias, d_projection = map(torch.zeros_like, (kernel, kernel[:, 0], projection))
        # The gradients of the state after a step, one row per sentence.
        d_output, d_memory = torch.zeros_like(first_output), d_memory.to(memories.dtype, copy=True)
        spans = list(_spans(batch_sizes, _GRADIENT_ROWS_AT_ONCE))
        longest = max(span[-1][0].stop - span[0][0].start for span in spans)
        scratch = gates.new_empty(len(gates), longest, 4 * cell_dim), gates.new_empty(len(gates), longest, cell_dim)
        for span in reversed(spans):
            first, last = span[0][0].start, span[-1][0].stop
            # Shape: (n_lstms, some words, 4 * cell_dim) and (n_lstms, some words, cell_dim)
            d_products, hidden = (each[:, : last - first] for each in scratch)
            for rows, n_now in reversed(span):
                d_now = d_projected[:, rows].add_(d_output[:, :n_now])
                if projection_clip is not None:
                    d_now.mul_(outputs[:, rows].abs() < projection_clip)
                here = slice(rows.start - first, rows.stop - first)
                cell_backward(
                    gates[:, rows],
                    memories[:, rows],
                    memories_before.pop()[:, :n_now],
                    back_to_hidden(d_now),
                    d_memory[:, :n_now],
                    cell_clip,
                    d_products=d_products[:, here],
                    hidden=hidden[:, here],
                )
                _write(back_to_output(d_products[:, here]), None, d_output[:, :n_now])
            d_inputs[:, first:last] = d_products @ from_inputs
            _add_product(d_kernel, kernel_inputs[..., first:last], d_products)
            _add_product(d_projection, hidden.transpose(1, 2), d_projected[:, first:last])
            d_bias += d_products.sum(1, dtype=d_bias.dtype)
        return d_inputs, d_kernel, d_bias, 2.0 * d_projection, d_output, d_memory, None, None, None


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """`total += left @ right`, in one pass over the total if it has the type of the product."""
    if left.dtype == total.dtype:
        total.baddbmm_(left, right)
    else:
        total += left @ right


def _with_doubled_candidates(gates: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor that has the gates i, g, f, o in its last dimension, with g doubled."""
    doubled = gates.clone()
    doubled.chunk(4, -1)[1].mul_(2.0)
    return doubled


def _spans(batch_sizes: Sequence[int], n_rows: int) -> Iterator[list[tuple[slice, int]]]:
    """Consecutive steps that together have `n_rows` rows or a little more."""
    span: list[tuple[slice, int]] = []
    for rows, size in rows_of_steps(batch_sizes):
        span.append((rows, size))
        if rows.stop - span[0][0].start >= n_rows:
            yield span
            span = []
    if span:
        yield span


def _rows_of(each: torch.Tensor | Sequence[torch.Tensor], rows: slice) -> torch.Tensor | list[torch.Tensor]:
    return each[:, rows] if isinstance(each, torch.Tensor) else [part[rows] for part in each]


def _write(each: torch.Tensor | Sequence[torch.Tensor], clip: float | None, out: torch.Tensor) -> None:
    """Clips and writes the result of a `StackedLinear`."""
    for part, to in [(each, out)] if isinstance(each, torch.Tensor) else zip(each, out, strict=True):
        if clip is None:
            to.copy_(part)
        else:
            torch.clamp(part, -clip, clip, out=to)
