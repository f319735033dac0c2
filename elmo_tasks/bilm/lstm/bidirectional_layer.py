"""
The LSTMs of a layer of the biLM, with projected outputs, run in one loop over words, with or without gradients.

Several LSTMs of the same shape (the two directions) run in one loop, each over its own inputs. Sentences are packed as
in `PackedBatch`: step by step, and within a step from the longest sentence to the shortest. `batch_sizes` is the number
of sentences that have a word at each step.

Unlike `modules/recurrent/recurrent_layer.py`, the loop computes all of a step: the weights are packed in any
precision, and a step of the biLM's size fills the cache, so its gradient would be slower for all words in one pass.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.frozen_value import FrozenValue
from elmo_tasks.bilm.kernels.packed_linear import STACKED_ON, StackedLinear, type_of_results
from elmo_tasks.bilm.lstm.cell import steps_on
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm, scaled_parameters
from elmo_tasks.bilm.packing import previous_values

__all__ = ["BidirectionalLayer", "LstmState", "ProjectedLstmFunction"]

# Without gradients, the input side of several steps is one product of about this many rows: enough to be fast (on a
# CPU, more would not fit in the cache), and few enough for sentences of any length.
_ROWS_AT_ONCE = {"cpu": 128}
# The gradients of the weights add up products of about this many rows, so only their gates need a gradient in memory.
_GRADIENT_ROWS_AT_ONCE = {"cpu": 1024}
LstmState = tuple[torch.Tensor, torch.Tensor]
"""Outputs and memories, of shapes `(n_lstms, n_sentences, projection_dim)` and `(n_lstms, n_sentences, cell_dim)`."""
Clips = tuple[float | None, float | None]
"""The largest magnitudes of the memory and of the output."""
_Products = torch.Tensor | Sequence[torch.Tensor]


class BidirectionalLayer:
    """
    LSTMs of the same shape, run in one loop over the words: with gradients where needed, and otherwise with weights
    that are packed once. This is not a module: the parameters are registered elsewhere.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm]) -> None:
        self.lstms = tuple(lstms)
        self._packed: FrozenValue[_Weights] = FrozenValue()

    def zero_state(self, n_sentences: int) -> LstmState:
        """The state before the first words. The memory, a sum over the sentence, is at least float32."""
        projection = self.lstms[0].projection
        cell_dim, projection_dim = projection.shape
        memory_dtype = torch.promote_types(projection.dtype, torch.float32)
        return (
            projection.new_zeros(len(self.lstms), n_sentences, projection_dim),
            projection.new_zeros(len(self.lstms), n_sentences, cell_dim, dtype=memory_dtype),
        )

    def __call__(
        self,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        state: LstmState,
        *,
        dtype: torch.dtype | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        From inputs of shape `(n_lstms, n_words, projection_dim)`, for each LSTM in the order of a `PackedBatch`, to
        outputs of the same shape, and the memory after the last word of each sentence. `state` is the one before the
        first words. `dtype` is the type of the products, by default the parameters'. With `torch.int8`, inputs and
        outputs are float32.
        """
        parameters = list(chain.from_iterable(lstm.parameters() for lstm in self.lstms))
        dtype = dtype or parameters[0].dtype
        inputs = inputs.to(type_of_results(dtype))
        clips = self.lstms[0].cell_clip, self.lstms[0].projection_clip
        # The cell's memory is twice the usual one.
        output, memory = state[0].to(inputs.dtype), 2.0 * state[1]
        is_trained = any(parameter.requires_grad for parameter in parameters)
        # Triton uses the current device. No effect on a CPU.
        with torch.cuda.device_of(inputs):  # type: ignore[no-untyped-call]
            if torch.is_grad_enabled() and (inputs.requires_grad or is_trained):
                if is_trained:
                    self._packed.forget()
                outputs, memory = ProjectedLstmFunction.apply(  # type: ignore[no-untyped-call]
                    inputs, *self._stacked_parameters(), output, memory, batch_sizes, clips
                )
            else:
                weights = self._packed(parameters, dtype, lambda: _Weights(*self._stacked_parameters(), dtype))
                outputs = torch.empty_like(inputs)
                weights.run(inputs, clips, batch_sizes, output, memory, outputs)
        return outputs, 0.5 * memory

    def _stacked_parameters(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        each = zip(*((lstm.kernel, lstm.bias, lstm.projection) for lstm in self.lstms), strict=True)
        return scaled_parameters(*map(torch.stack, each))


class _Weights:
    """
    The products with `W_x` (and the bias), with `W_h`, and with `P`, of type `dtype`, from `scaled_parameters`, of
    shapes `(n_lstms, 2 * projection_dim, 4 * cell_dim)`, `(n_lstms, 4 * cell_dim)` and
    `(n_lstms, cell_dim, projection_dim)`.
    """

    def __init__(self, kernel: torch.Tensor, bias: torch.Tensor, projection: torch.Tensor, dtype: torch.dtype) -> None:
        # Shape: (n_lstms, 4 * cell_dim, projection_dim), each
        of_input, of_output = kernel.transpose(1, 2).chunk(2, 2)
        self.input_side = StackedLinear(of_input, bias, dtype=dtype)
        self.recurrent_side = StackedLinear(of_output, dtype=dtype)
        self.projection = StackedLinear(projection.transpose(1, 2), dtype=dtype)

    def run(
        self,
        inputs: torch.Tensor,
        clips: Clips,
        batch_sizes: Sequence[int],
        output: torch.Tensor,
        memory: torch.Tensor,
        outputs: torch.Tensor,
        *kept: torch.Tensor,
    ) -> None:
        """`_run` with the input side of several steps in one product."""
        spans = _spans(batch_sizes, _ROWS_AT_ONCE.get(inputs.device.type, 4096))
        starts = accumulate(map(sum, spans), initial=0)
        # Shape: (n_now, 4 * cell_dim), for each step and LSTM
        input_sides = chain.from_iterable(
            _steps(self.input_side(inputs[:, start : start + sum(span)]), span)
            for start, span in zip(starts, spans, strict=False)
        )

        def products(_: slice, output: torch.Tensor) -> _Products:
            return self.recurrent_side(output, next(input_sides))

        _run(products, self.projection, clips, batch_sizes, output, memory, outputs, *kept)


def _run(
    kernel: Callable[[slice, torch.Tensor], _Products],
    projection: StackedLinear,
    clips: Clips,
    batch_sizes: Sequence[int],
    output: torch.Tensor,
    memory: torch.Tensor,
    outputs: torch.Tensor,
    gates: torch.Tensor | None = None,
    memories: torch.Tensor | None = None,
) -> None:
    """
    Runs LSTMs over sentences, without gradients. `kernel` computes the products with the kernel of a step, given its
    packed rows and the previous outputs.

    `output` and `memory` are the state before the first words, of shape `(n_lstms, batch_sizes[0], projection_dim)` and
    `(n_lstms, batch_sizes[0], cell_dim)`; `memory` is updated in place to its value after the last words. `outputs`, of
    shape `(n_lstms, n_words, projection_dim)`, is filled. So are `gates` and `memories`, both or none, with what the
    backward pass needs, packed like the outputs; `gates` may be less precise than the memory.
    """
    steps = steps_on(clips[0], memory, outputs.dtype)
    start = 0
    for n_now in batch_sizes:
        rows = slice(start, start + n_now)
        start = rows.stop
        # Shape: (n_now, 4 * cell_dim), for each LSTM
        products = kernel(rows, output[:, :n_now])
        kept = () if gates is None or memories is None else (gates[:, rows], memories[:, rows])
        # Shape: (n_lstms, n_now, cell_dim)
        units = steps.forward(products, memory[:, :n_now], *kept)
        # Shape: (n_lstms, n_now, projection_dim)
        output = outputs[:, rows]
        _write(projection(units), clips[1], output)


class ProjectedLstmFunction(torch.autograd.Function):
    """
    `_run` with gradients. The backward pass runs through the sentences in reverse for the cell's gradient and computes
    each weight's gradient in products over many words.

    `ProjectedLstmFunction.apply(inputs, kernel, bias, projection, output, memory, batch_sizes, clips)` takes the
    tensors of `_Weights` and `_run` and returns the outputs and the last memory. `inputs`, `output`, the products and
    the outputs have the same type; the memory keeps its own.
    """

    @staticmethod
    def forward(ctx, inputs, kernel, bias, projection, output, memory, batch_sizes, clips):  # type: ignore[no-untyped-def]
        dim, cell_dim, dtype = inputs.size(-1), memory.size(-1), inputs.dtype
        last_memory, outputs = memory.clone(), torch.empty_like(inputs)
        gates, memories = (like.new_empty(*inputs.shape[:2], n * cell_dim) for like, n in ((inputs, 4), (memory, 1)))
        settings = clips, batch_sizes, output, last_memory, outputs, gates, memories
        # What the kernel is multiplied by. Shape: (n_lstms, n_words, 2 * projection_dim)
        if STACKED_ON.get(inputs.device.type):
            # Fewer kernels in a step: its rows are copied nowhere.
            _Weights(kernel, bias, projection, dtype).run(inputs, *settings)
            read = torch.cat([inputs, torch.cat(previous_values(outputs, output, batch_sizes), 1)], -1)
        else:
            read = torch.cat([inputs, torch.empty_like(inputs)], -1)
            of_kernel = StackedLinear(kernel.transpose(1, 2), bias, dtype=dtype)

            # With fewer than about 48 rows, two products would be faster, because the weights are read again in each
            # step.
            def products(rows: slice, output: torch.Tensor) -> _Products:
                read[:, rows, dim:] = output
                return of_kernel(read[:, rows])

            _run(products, StackedLinear(projection.transpose(1, 2), dtype=dtype), *settings)
        ctx.save_for_backward(read, kernel, projection, memory, outputs, gates, memories)
        ctx.settings = batch_sizes, clips
        return outputs, last_memory

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: torch.Tensor, d_memory: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # The forward pass determined the types, so autocast must not change them here.
        with torch.autocast(d_outputs.device.type, enabled=False):
            return ProjectedLstmFunction._backward(ctx, d_outputs, d_memory)

    @staticmethod
    def _backward(ctx: Any, d_outputs: torch.Tensor, d_memory: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        read, kernel, projection, first_memory, outputs, gates, memories = ctx.saved_tensors
        batch_sizes, (cell_clip, projection_clip) = ctx.settings
        dtype, dim, device = read.dtype, outputs.size(-1), read.device.type
        steps, is_stacked = steps_on(cell_clip, first_memory, dtype), STACKED_ON.get(device)
        # If products are stacked, the gradient of the previous outputs is added in place, and that of the inputs is
        # computed for all rows of a span.
        weights = [projection, *(kernel.chunk(2, 1) if is_stacked else [kernel])]
        back_to_hidden, back_to_read, *back_to_output = (StackedLinear(weight, dtype=dtype) for weight in weights)
        d_read, d_projected = torch.empty_like(read), d_outputs.to(dtype, copy=True)
        d_kernel, d_bias, d_projection = map(torch.zeros_like, (kernel, kernel[:, 0], projection))
        # The gradients of the state before the first words, and after a step, with one row per sentence.
        d_first, d_memory = torch.zeros_like(outputs[:, : batch_sizes[0]]), d_memory.to(memories.dtype, copy=True)
        each = [part.split(batch_sizes, 1) for part in (gates, memories, outputs, d_projected, d_read)]
        each += [
            previous_values(values, first, batch_sizes)
            for values, first in ((memories, first_memory), (d_projected, d_first))
        ]
        kept = list(zip(*each, strict=True))
        spans = _spans(batch_sizes, _GRADIENT_ROWS_AT_ONCE.get(device, 4096))
        longest, last = max(map(sum, spans)), read.size(1)
        # Filled again in each span. Shape: (n_lstms, longest, 4 * cell_dim) and (n_lstms, longest, cell_dim)
        scratch = torch.empty_like(gates[:, :longest]), torch.empty_like(memories[:, :longest], dtype=dtype)
        for span in reversed(spans):
            rows = slice(last - sum(span), last)
            last = rows.start
            # Shape: (n_lstms, some words, 4 * cell_dim) and (n_lstms, some words, cell_dim)
            d_products, hidden = (part[:, : sum(span)] for part in scratch)
            to_fill = zip(*(torch.split(part, span, 1) for part in (d_products, hidden)), strict=True)
            for d_product, units in reversed(list(to_fill)):
                gate, memory, output, d_now, d_read_now, before, d_before = kept.pop()
                if projection_clip is not None:
                    # The derivative of the clip, in one pass.
                    bounds = -projection_clip, projection_clip
                    torch.ops.aten.hardtanh_backward.grad_input(d_now, output, *bounds, grad_input=d_now)
                d_hidden = back_to_hidden(d_now)
                steps.backward(gate, memory, before, d_hidden, d_memory[:, : gate.size(1)], d_product, units)
                if is_stacked:
                    back_to_output[0](d_product, d_before)
                else:
                    _write(back_to_read(d_product), None, d_read_now)
                    d_before.add_(d_read_now[..., dim:])
            if is_stacked:
                _write(back_to_read(d_products), None, d_read[:, rows, :dim])
            _add_product(d_kernel, read[:, rows].transpose(1, 2), d_products)
            _add_product(d_projection, hidden.transpose(1, 2), d_projected[:, rows])
            d_bias += d_products.sum(1, dtype=d_bias.dtype)
        return d_read[..., :dim], d_kernel, d_bias, d_projection, d_first, d_memory, None, None


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """`total += left @ right`, in one pass over the total if it has the type of the product."""
    if left.dtype == total.dtype:
        total.baddbmm_(left, right)
    else:
        total += left @ right


def _spans(batch_sizes: Sequence[int], n_rows: int) -> list[list[int]]:
    """The steps in spans that have `n_rows` rows or a little more."""
    spans: list[list[int]] = []
    n_more = 0
    for size in batch_sizes:
        if n_more <= 0:
            spans.append([])
            n_more = n_rows
        spans[-1].append(size)
        n_more -= size
    return spans


def _steps(each: torch.Tensor | Sequence[torch.Tensor], sizes: list[int]) -> Iterable[Any]:
    """Splits the result of a `StackedLinear` into steps."""
    if isinstance(each, torch.Tensor):
        return torch.split(each, sizes, 1)
    return zip(*(torch.split(part, sizes) for part in each), strict=True)


def _write(each: torch.Tensor | Sequence[torch.Tensor], clip: float | None, out: torch.Tensor) -> None:
    """Clips and writes the result of a `StackedLinear`."""
    for part, to in [(each, out)] if isinstance(each, torch.Tensor) else zip(each, out, strict=True):
        if clip is None:
            to.copy_(part)
        else:
            torch.clamp(part, -clip, clip, out=to)
