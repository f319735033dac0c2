"""
The LSTMs of a layer of the biLM, with projected outputs, run in one loop over words, with or without gradients.

Several LSTMs of the same shape (the two directions) run in one loop, each over its own inputs. Sentences are packed as
in `PackedBatch`: step by step, and within a step from the longest sentence to the shortest. `batch_sizes` is the number
of sentences that have a word at each step.

Unlike `modules/recurrent/recurrent_layer.py`, the loop computes all of a step: the weights are packed in any
precision, and a step of the biLM's size fills the cache, so its gradient would be slower for all words in one pass.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.frozen_value import FrozenValue
from elmo_tasks.bilm.kernels.packed_linear import IS_GPU, StackedLinear, type_of_results
from elmo_tasks.bilm.lstm.cell import CellGradient, Saved, steps_on
from elmo_tasks.bilm.lstm.one_sentence import SentenceLstms, takes_one_row
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm, scaled_parameters
from elmo_tasks.bilm.packing import previous_values

__all__ = ["BidirectionalLayer", "Clips", "ProjectedLstmFunction"]

# Without gradients, the input side of several steps is one product of about this many rows: enough to be fast (on a
# CPU, more would not fit in the cache), and few enough for sentences of any length.
_ROWS_AT_ONCE = {"cpu": 128}
# The gradients of the weights add up products of about this many rows, so only their gates need a gradient in memory.
_GRADIENT_ROWS_AT_ONCE = {"cpu": 1024}
_Products = torch.Tensor | Sequence[torch.Tensor]


class Clips(NamedTuple):
    """The largest magnitudes of the memory and of the output."""

    memory: float | None
    output: float | None


class BidirectionalLayer:
    """
    LSTMs of the same shape, run in one loop over the words: with gradients where needed, and otherwise with weights
    that are packed once. This is not a module: the parameters are registered elsewhere.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm]) -> None:
        self.lstms = tuple(lstms)
        self._clips = Clips(self.lstms[0].cell_clip, self.lstms[0].projection_clip)
        # Separate, because one sentence on a CPU needs the second, and a batch the third.
        self._input_side: FrozenValue[StackedLinear] = FrozenValue()
        self._of_sentence: FrozenValue[SentenceLstms] = FrozenValue()
        self._of_steps: FrozenValue[_StepWeights] = FrozenValue()

    def __call__(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], *, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """
        From inputs of shape `(n_lstms, n_words, projection_dim)`, for each LSTM in the order of a `PackedBatch`, to
        outputs of the same shape. `dtype` is the type of the products, by default the parameters'. With `torch.int8`,
        inputs and outputs are float32.
        """
        parameters = list(chain.from_iterable(lstm.parameters() for lstm in self.lstms))
        dtype = dtype or parameters[0].dtype
        inputs = inputs.to(type_of_results(dtype))
        is_trained = any(parameter.requires_grad for parameter in parameters)
        # Triton uses the current device. No effect on a CPU.
        with torch.cuda.device_of(inputs):  # type: ignore[no-untyped-call]
            if torch.is_grad_enabled() and (inputs.requires_grad or is_trained):
                if is_trained:
                    for weights in (self._input_side, self._of_sentence, self._of_steps):
                        weights.forget()
                return ProjectedLstmFunction.apply(  # type: ignore[no-any-return, no-untyped-call]
                    inputs, *self._scaled_parameters(), batch_sizes, self._clips
                )
            return self._run(inputs, batch_sizes, parameters, dtype)

    def _run(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], parameters: list[nn.Parameter], dtype: torch.dtype
    ) -> torch.Tensor:
        input_side = self._input_side(parameters, dtype, lambda: _input_side(*self._scaled_parameters()[:2], dtype))
        if batch_sizes[0] == 1 and takes_one_row(parameters[0], dtype):
            run = self._of_sentence(parameters, dtype, lambda: SentenceLstms(self.lstms))
            spans = _spans(batch_sizes, _ROWS_AT_ONCE["cpu"])
            return run(list(input_side(inputs[:, span.rows])) for span in spans)
        weights = self._of_steps(parameters, dtype, lambda: _StepWeights.of(*self._scaled_parameters()[::2], dtype))
        outputs = torch.empty_like(inputs)
        _run(inputs, input_side, weights, _Recurrence(outputs, weights.projection, batch_sizes, self._clips))
        return outputs

    def _scaled_parameters(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        each = zip(*((lstm.kernel, lstm.bias, lstm.projection) for lstm in self.lstms), strict=True)
        return scaled_parameters(*map(torch.stack, each))


# All of `scaled_parameters`: shapes `(n_lstms, 2 * projection_dim, 4 * cell_dim)`, `(n_lstms, 4 * cell_dim)` and
# `(n_lstms, cell_dim, projection_dim)`.
def _input_side(kernel: torch.Tensor, bias: torch.Tensor, dtype: torch.dtype) -> StackedLinear:
    """The products with `W_x`, and the bias."""
    return StackedLinear(kernel.chunk(2, 1)[0].transpose(1, 2), bias, dtype=dtype)


class _StepWeights(NamedTuple):
    """The products of a step, with `W_h` and with `P`."""

    recurrent_side: StackedLinear
    projection: StackedLinear

    @classmethod
    def of(cls, kernel: torch.Tensor, projection: torch.Tensor, dtype: torch.dtype) -> Self:
        recurrent_side = kernel.chunk(2, 1)[1].transpose(1, 2)
        return cls(*(StackedLinear(each, dtype=dtype) for each in (recurrent_side, projection.transpose(1, 2))))


class _Recurrence:
    """The cells and the projections of LSTMs from step to step, starting with zero. Fills `outputs`, and `saved`."""

    def __init__(
        self,
        outputs: torch.Tensor,
        projection: StackedLinear,
        batch_sizes: Sequence[int],
        clips: Clips,
        saved: Saved | None = None,
    ) -> None:
        self.batch_sizes, self._outputs, self._projection = batch_sizes, outputs, projection
        self._clip, self._saved = clips.output, saved
        n_lstms, _, dim = outputs.shape
        # The memory is a sum over the sentence, so it is at least float32.
        memory_type = torch.promote_types(outputs.dtype, torch.float32)
        # Shape: (n_lstms, n_sentences, cell_dim)
        self._memory = outputs.new_zeros(n_lstms, batch_sizes[0], projection.input_dim, dtype=memory_type)
        self._previous = outputs.new_zeros(n_lstms, batch_sizes[0], dim)
        self._cell = steps_on(clips.memory, self._memory, outputs.dtype)

    def previous(self, n_rows: int) -> torch.Tensor:
        """The outputs at the previous words of a step: shape `(n_lstms, n_rows, projection_dim)`."""
        return self._previous[:, :n_rows]

    def step(self, rows: slice, products: _Products) -> None:
        """A step, from its rows among the words and the products with the kernel, `(n_rows, 4 * cell_dim)` each."""
        saved = None if self._saved is None else Saved(*(part[:, rows] for part in self._saved))
        # Shape: (n_lstms, n_rows, cell_dim)
        hidden = self._cell.forward(products, self._memory[:, : rows.stop - rows.start], saved)
        # Shape: (n_lstms, n_rows, projection_dim)
        self._previous = self._outputs[:, rows]
        _write(self._projection(hidden), self._clip, self._previous)


def _run(inputs: torch.Tensor, input_side: StackedLinear, weights: _StepWeights, recurrence: _Recurrence) -> None:
    """Runs LSTMs over sentences: the input side of several steps in one product, the recurrent side in each step."""
    for span in _spans(recurrence.batch_sizes, _ROWS_AT_ONCE.get(inputs.device.type, 4096)):
        input_sides = _steps(input_side(inputs[:, span.rows]), span.sizes)
        for rows, input_side_now in zip(span.rows_of_steps(), input_sides, strict=True):
            previous = recurrence.previous(rows.stop - rows.start)
            recurrence.step(rows, weights.recurrent_side(previous, input_side_now))


def _run_joined(read: torch.Tensor, kernel: StackedLinear, recurrence: _Recurrence) -> None:
    """
    The same with one product per step. `read`, what the kernel is multiplied by, has the inputs and gets the previous
    outputs. With fewer than about 48 rows, two products would be faster, because the weights are read again in each
    step.
    """
    dim = read.size(-1) // 2
    for span in _spans(recurrence.batch_sizes, read.size(1)):
        for rows in span.rows_of_steps():
            now = read[:, rows]
            now[..., dim:] = recurrence.previous(now.size(1))
            recurrence.step(rows, kernel(now))


class ProjectedLstmFunction(torch.autograd.Function):
    """
    The outputs with gradients, from the tensors of `scaled_parameters`:
    `ProjectedLstmFunction.apply(inputs, kernel, bias, projection, batch_sizes, clips)`. The inputs, the products and
    the outputs have the same type.
    """

    @staticmethod
    def forward(ctx, inputs, kernel, bias, projection, batch_sizes, clips):  # type: ignore[no-untyped-def]
        dtype, outputs = inputs.dtype, torch.empty_like(inputs)
        (n_lstms, n_words, _), cell_dim = inputs.shape, projection.size(1)
        memories = inputs.new_empty(n_lstms, n_words, cell_dim, dtype=torch.promote_types(dtype, torch.float32))
        saved = Saved(inputs.new_empty(n_lstms, n_words, 4 * cell_dim), memories)
        # What the kernel is multiplied by. Shape: (n_lstms, n_words, 2 * projection_dim)
        if IS_GPU.get(inputs.device.type):
            # Fewer kernels in a step: its rows are copied nowhere.
            weights = _StepWeights.of(kernel, projection, dtype)
            recurrence = _Recurrence(outputs, weights.projection, batch_sizes, clips, saved)
            _run(inputs, _input_side(kernel, bias, dtype), weights, recurrence)
            read = torch.cat([inputs, torch.cat(_previous_values(outputs, batch_sizes), 1)], -1)
        else:
            read = torch.cat([inputs, torch.empty_like(inputs)], -1)
            to_products = StackedLinear(kernel.transpose(1, 2), bias, dtype=dtype)
            to_outputs = StackedLinear(projection.transpose(1, 2), dtype=dtype)
            _run_joined(read, to_products, _Recurrence(outputs, to_outputs, batch_sizes, clips, saved))
        ctx.save_for_backward(read, kernel, projection, outputs, *saved)
        ctx.settings = batch_sizes, clips
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # The forward pass determined the types, so autocast must not change them here.
        with torch.autocast(d_outputs.device.type, enabled=False):
            batch_sizes, clips = ctx.settings
            return *_backward(*ctx.saved_tensors, batch_sizes=batch_sizes, clips=clips, d_outputs=d_outputs), None, None


class _StepBack(NamedTuple):
    """A step in the backward pass: parts of tensors for all words, of shape `(n_lstms, n_rows, ...)`."""

    gates: torch.Tensor
    memory: torch.Tensor
    memory_before: torch.Tensor
    output: torch.Tensor
    d_output: torch.Tensor
    """Of the projection once the step is done."""
    d_output_before: torch.Tensor
    d_input: torch.Tensor
    d_products: torch.Tensor
    hidden: torch.Tensor


def _backward(
    read: torch.Tensor,
    kernel: torch.Tensor,
    projection: torch.Tensor,
    outputs: torch.Tensor,
    gates: torch.Tensor,
    memories: torch.Tensor,
    *,
    batch_sizes: Sequence[int],
    clips: Clips,
    d_outputs: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """
    The gradients of the inputs, the kernel, the bias and the projection. Runs through the sentences in reverse for the
    gradient of the cell, and computes the gradients of the weights in products over the words of a span.
    """
    dtype, device = read.dtype, read.device.type
    through_kernel = (_StackedBack if IS_GPU.get(device) else _JoinedBack)(kernel, dtype)
    through_projection = StackedLinear(projection, dtype=dtype)
    d_inputs, d_outputs = torch.empty_like(outputs), d_outputs.to(dtype, copy=True)
    d_kernel, d_bias, d_projection = map(torch.zeros_like, (kernel, kernel[:, 0], projection))
    # The gradient of the memory after a step, with one row per sentence, which is zero until its last word.
    d_memory = torch.zeros_like(memories[:, : batch_sizes[0]])
    cell = steps_on(clips.memory, d_memory, dtype)
    memories_before, d_outputs_before = (_previous_values(each, batch_sizes) for each in (memories, d_outputs))
    spans = _spans(batch_sizes, _GRADIENT_ROWS_AT_ONCE.get(device, 4096))
    longest = max(span.n_rows for span in spans)
    # Filled again in each span. Shape: (n_lstms, longest, 4 * cell_dim) and (n_lstms, longest, cell_dim)
    all_d_products, all_hidden = (
        torch.empty_like(gates[:, :longest]),
        torch.empty_like(memories[:, :longest], dtype=dtype),
    )
    for span in reversed(spans):
        d_products, hidden = all_d_products[:, : span.n_rows], all_hidden[:, : span.n_rows]
        of_words = gates, memories, outputs, d_outputs, d_inputs
        parts = (*(tensor[:, span.rows] for tensor in of_words), d_products, hidden)
        for step in reversed(_steps_back(span, memories_before, d_outputs_before, *parts)):
            if clips.output is not None:
                # The derivative of the clip, in one pass.
                bounds = -clips.output, clips.output
                torch.ops.aten.hardtanh_backward.grad_input(
                    step.d_output, step.output, *bounds, grad_input=step.d_output
                )
            d_hidden = through_projection(step.d_output)
            d_memory_now = d_memory[:, : step.gates.size(1)]
            cell.backward(CellGradient(*step[:3], d_hidden, d_memory_now, step.d_products, step.hidden))
            through_kernel.step(step)
        through_kernel.span(d_products, d_inputs[:, span.rows])
        _add_product(d_kernel, read[:, span.rows].transpose(1, 2), d_products)
        _add_product(d_projection, hidden.transpose(1, 2), d_outputs[:, span.rows])
        d_bias += d_products.sum(1, dtype=d_bias.dtype)
    return d_inputs, d_kernel, d_bias, d_projection


def _steps_back(
    span: "_Span",
    memories_before: list[torch.Tensor],
    d_outputs_before: list[torch.Tensor],
    *of_span: torch.Tensor,
) -> list[_StepBack]:
    """The steps of a span, from lists for all steps, and from the other parts of `_StepBack` for its words in order."""
    gates, memory, output, d_output, d_input, d_products, hidden = (
        torch.split(tensor, span.sizes, 1) for tensor in of_span
    )
    before, d_before = memories_before[span.steps], d_outputs_before[span.steps]
    return list(map(_StepBack, gates, memory, before, output, d_output, d_before, d_input, d_products, hidden))


class _JoinedBack:
    """The gradients of the inputs and the previous outputs, in one product per step."""

    def __init__(self, kernel: torch.Tensor, dtype: torch.dtype) -> None:
        self._to_read = StackedLinear(kernel, dtype=dtype)

    def step(self, step: _StepBack) -> None:
        each_d_read = self._to_read(step.d_products)
        for d_read, d_input, d_before in zip(each_d_read, step.d_input, step.d_output_before, strict=True):
            # Shape: (n_rows, projection_dim), each
            of_input, of_output = d_read.chunk(2, -1)
            d_input.copy_(of_input)
            d_before.add_(of_output)

    def span(self, d_products: torch.Tensor, d_inputs: torch.Tensor) -> None:
        pass


class _StackedBack:
    """The same where a kernel adds to the gradients of the previous outputs, and the inputs' can wait."""

    def __init__(self, kernel: torch.Tensor, dtype: torch.dtype) -> None:
        of_input, of_output = kernel.chunk(2, 1)
        self._to_input, self._to_output = StackedLinear(of_input, dtype=dtype), StackedLinear(of_output, dtype=dtype)

    def step(self, step: _StepBack) -> None:
        self._to_output(step.d_products, step.d_output_before)

    def span(self, d_products: torch.Tensor, d_inputs: torch.Tensor) -> None:
        """The gradients of the inputs at the words of a span."""
        _write(self._to_input(d_products), None, d_inputs)


def _previous_values(values: torch.Tensor, batch_sizes: Sequence[int]) -> list[torch.Tensor]:
    """For each step, the values at the previous words: zero at the first step."""
    return previous_values(values, torch.zeros_like(values[:, : batch_sizes[0]]), batch_sizes)


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """`total += left @ right`, in one pass over the total if it has the type of the product."""
    if left.dtype == total.dtype:
        total.baddbmm_(left, right)
    else:
        total += left @ right


class _Span(NamedTuple):
    """Some successive steps, with their numbers, their rows among the packed words, and the rows of each."""

    steps: slice
    rows: slice
    sizes: list[int]

    @property
    def n_rows(self) -> int:
        return self.rows.stop - self.rows.start  # type: ignore[no-any-return]

    def rows_of_steps(self) -> Iterator[slice]:
        start = self.rows.start
        for size in self.sizes:
            yield slice(start, start + size)
            start += size


def _spans(batch_sizes: Sequence[int], n_rows: int) -> list[_Span]:
    """The steps in spans that have `n_rows` rows or a little more."""
    spans: list[_Span] = []
    first_step = first_row = last_row = 0
    for step, size in enumerate(batch_sizes, 1):
        last_row += size
        if last_row - first_row >= n_rows or step == len(batch_sizes):
            sizes = list(batch_sizes[first_step:step])
            spans.append(_Span(slice(first_step, step), slice(first_row, last_row), sizes))
            first_step, first_row = step, last_row
    return spans


def _steps(products: _Products, sizes: list[int]) -> Iterable[Any]:
    """Splits the result of a `StackedLinear` into steps."""
    if isinstance(products, torch.Tensor):
        return torch.split(products, sizes, 1)
    return zip(*(torch.split(part, sizes) for part in products), strict=True)


def _write(products: _Products, clip: float | None, out: torch.Tensor) -> None:
    """Clips and writes the result of a `StackedLinear`."""
    for part, to in [(products, out)] if isinstance(products, torch.Tensor) else zip(products, out, strict=True):
        if clip is None:
            to.copy_(part)
        else:
            torch.clamp(part, -clip, clip, out=to)
