"""A layer of the biLM with gradients, computed by our own backward pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.lstm.projected_lstm import ScaledParameters
from elmo_tasks.bilm.lstm.recurrence import (
    Clips,
    Recurrence,
    cell_steps,
    input_side_of,
    projection_of,
    recurrent_side_of,
    run_with_input_side,
)
from elmo_tasks.bilm.lstm.step_chunks import StepChunk, clipped_into, step_chunks
from elmo_tasks.bilm.lstm.torch_steps import SavedSteps, StepGradient
from elmo_tasks.bilm.packed_linear import IS_GPU, StackedLinear
from elmo_tasks.bilm.packing import previous_values

__all__ = ["ProjectedLstmFunction"]

# The gradients of the weights add up products of about this many rows, so only their gates need a
# gradient in memory.
GRADIENT_ROWS_AT_ONCE = {"cpu": 1024}


class ProjectedLstmFunction(torch.autograd.Function):
    """
    The outputs with gradients, from the tensors of `ScaledParameters`:
    `ProjectedLstmFunction.apply(inputs, kernel, bias, projection, batch_sizes, clips)`. The inputs,
    the products and the outputs have the same type.
    """

    @staticmethod
    def forward(ctx, inputs, kernel, bias, projection, batch_sizes, clips):  # type: ignore[no-untyped-def]
        n_lstms, n_words, _ = inputs.shape
        cell_dim = projection.size(1)
        parameters = ScaledParameters(kernel, bias, projection)
        memory_type = torch.promote_types(inputs.dtype, torch.float32)
        saved = SavedSteps(
            gates=inputs.new_empty(n_lstms, n_words, 4 * cell_dim),
            memory=inputs.new_empty(n_lstms, n_words, cell_dim, dtype=memory_type),
        )
        outputs = torch.empty_like(inputs)
        to_outputs = projection_of(parameters, inputs.dtype)
        recurrence = Recurrence(outputs, to_outputs, batch_sizes, clips, saved)
        run = _forward_on_gpu if IS_GPU.get(inputs.device.type) else _forward_on_cpu
        kernel_inputs = run(inputs, parameters, recurrence)
        ctx.save_for_backward(kernel_inputs, kernel, projection, outputs, saved.gates, saved.memory)
        ctx.batch_sizes = batch_sizes
        ctx.clips = clips
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        kernel_inputs, kernel, projection, outputs, gates, memory = ctx.saved_tensors
        # The forward pass determined the types, so autocast must not change them here.
        with torch.autocast(d_outputs.device.type, enabled=False):
            backward_pass = _BackwardPass(
                kernel_inputs=kernel_inputs,
                kernel=kernel,
                projection=projection,
                outputs=outputs,
                saved=SavedSteps(gates, memory),
                batch_sizes=ctx.batch_sizes,
                clips=ctx.clips,
                # A copy, because the backward pass changes it in place.
                d_outputs=d_outputs.to(kernel_inputs.dtype, copy=True),
            )
            backward_pass.run()
        return (
            backward_pass.d_inputs,
            backward_pass.d_kernel,
            backward_pass.d_bias,
            backward_pass.d_projection,
            None,
            None,
        )


def _forward_on_gpu(
    inputs: torch.Tensor, parameters: ScaledParameters, recurrence: Recurrence
) -> torch.Tensor:
    """
    Runs the recurrence, and returns what the parameter `kernel` was multiplied by: the inputs and
    the previous outputs, of shape `(n_lstms, n_words, 2 * projection_dim)`. No step copies rows, so
    fewer GPU kernels are launched.
    """
    input_side = input_side_of(parameters, inputs.dtype)
    recurrent_side = recurrent_side_of(parameters, inputs.dtype)
    run_with_input_side(inputs, input_side, recurrent_side, recurrence)
    previous_outputs = torch.cat(_previous_or_zero(recurrence.outputs, recurrence.batch_sizes), 1)
    return torch.cat([inputs, previous_outputs], -1)


def _forward_on_cpu(
    inputs: torch.Tensor, parameters: ScaledParameters, recurrence: Recurrence
) -> torch.Tensor:
    """
    As `_forward_on_gpu`, with one product per step. With fewer than about 48 rows, two products
    would be faster, because the weights are read again in each step.
    """
    dim = inputs.size(-1)
    to_products = StackedLinear(
        parameters.kernel.transpose(1, 2), parameters.bias, dtype=inputs.dtype
    )
    # The second half gets the previous outputs.
    kernel_inputs = torch.cat([inputs, torch.empty_like(inputs)], -1)
    for chunk in step_chunks(recurrence.batch_sizes, kernel_inputs.size(1)):
        for rows in chunk.rows_of_steps():
            step_inputs = kernel_inputs[:, rows]
            step_inputs[..., dim:] = recurrence.previous(step_inputs.size(1))
            recurrence.step(rows, to_products(step_inputs))
    return kernel_inputs


@dataclass(slots=True, kw_only=True)
class _StepTensors:
    """
    A step of the backward pass: views of tensors for all words, of shape `(n_lstms, n_rows, ...)`.
    """

    gates: torch.Tensor
    memory: torch.Tensor
    memory_before: torch.Tensor
    output: torch.Tensor
    d_output: torch.Tensor
    """The gradient of the output. `_step` turns it into that of the output before its clip."""
    d_previous_output: torch.Tensor
    d_input: torch.Tensor
    d_products: torch.Tensor
    hidden: torch.Tensor


class _BackwardPass:
    """
    The gradients of the inputs, the kernel, the bias and the projection. Runs through the sentences
    in reverse for the gradient of the cell, and computes the gradients of the weights in products
    over the words of a chunk.
    """

    def __init__(
        self,
        *,
        kernel_inputs: torch.Tensor,
        kernel: torch.Tensor,
        projection: torch.Tensor,
        outputs: torch.Tensor,
        saved: SavedSteps,
        batch_sizes: Sequence[int],
        clips: Clips,
        d_outputs: torch.Tensor,
    ) -> None:
        self._kernel_inputs = kernel_inputs
        self._outputs = outputs
        self._saved = saved
        self._clips = clips
        self._d_outputs = d_outputs
        self.d_inputs = torch.empty_like(outputs)
        self.d_kernel = torch.zeros_like(kernel)
        self.d_bias = torch.zeros_like(kernel[:, 0])
        self.d_projection = torch.zeros_like(projection)

        dtype = kernel_inputs.dtype
        device = kernel_inputs.device.type
        self._through_projection = StackedLinear(projection, dtype=dtype)
        self._through_kernel: _ThroughKernelOnCpu | _ThroughKernelOnGpu
        if IS_GPU.get(device):
            self._through_kernel = _ThroughKernelOnGpu(kernel, dtype)
        else:
            self._through_kernel = _ThroughKernelOnCpu(kernel, dtype)

        # The gradient of the memory after a step, with one row per sentence, which is zero until
        # its last word.
        self._d_memory = torch.zeros_like(saved.memory[:, : batch_sizes[0]])
        self._cell = cell_steps(clips.memory, self._d_memory, dtype)
        self._memories_before = _previous_or_zero(saved.memory, batch_sizes)
        self._d_previous_outputs = _previous_or_zero(d_outputs, batch_sizes)
        self._chunks = step_chunks(batch_sizes, GRADIENT_ROWS_AT_ONCE.get(device, 4096))
        longest = max(chunk.n_rows for chunk in self._chunks)
        # Filled again in each chunk. Shape: (n_lstms, longest, 4 * cell_dim) and (n_lstms, longest,
        # cell_dim)
        self._d_products = torch.empty_like(saved.gates[:, :longest])
        self._hidden = torch.empty_like(saved.memory[:, :longest], dtype=dtype)

    def run(self) -> None:
        """Fills the four gradients."""
        for chunk in reversed(self._chunks):
            for step in self._reversed_steps(chunk):
                self._step(step)
            d_products = self._d_products[:, : chunk.n_rows]
            self._through_kernel.chunk(d_products, self.d_inputs[:, chunk.rows])
            kernel_inputs = self._kernel_inputs[:, chunk.rows]
            _add_product(self.d_kernel, kernel_inputs.transpose(1, 2), d_products)
            hidden = self._hidden[:, : chunk.n_rows]
            _add_product(self.d_projection, hidden.transpose(1, 2), self._d_outputs[:, chunk.rows])
            self.d_bias += d_products.sum(1, dtype=self.d_bias.dtype)

    def _step(self, step: _StepTensors) -> None:
        clip = self._clips.output
        if clip is not None:
            # The derivative of the clip, in one pass.
            torch.ops.aten.hardtanh_backward.grad_input(
                step.d_output, step.output, -clip, clip, grad_input=step.d_output
            )
        gradient = StepGradient(
            gates=step.gates,
            memory=step.memory,
            memory_before=step.memory_before,
            d_hidden=self._through_projection(step.d_output),
            d_memory=self._d_memory[:, : step.gates.size(1)],
            d_products=step.d_products,
            hidden=step.hidden,
        )
        self._cell.backward(gradient)
        self._through_kernel.step(step)

    def _reversed_steps(self, chunk: StepChunk) -> Iterator[_StepTensors]:
        """
        The steps of a chunk, the last one first. All tensors are split at once, because slicing is
        slow in loops.
        """
        sizes = chunk.sizes
        gates = torch.split(self._saved.gates[:, chunk.rows], sizes, 1)
        memory = torch.split(self._saved.memory[:, chunk.rows], sizes, 1)
        output = torch.split(self._outputs[:, chunk.rows], sizes, 1)
        d_output = torch.split(self._d_outputs[:, chunk.rows], sizes, 1)
        d_input = torch.split(self.d_inputs[:, chunk.rows], sizes, 1)
        d_products = torch.split(self._d_products[:, : chunk.n_rows], sizes, 1)
        hidden = torch.split(self._hidden[:, : chunk.n_rows], sizes, 1)
        for index in reversed(range(len(sizes))):
            number = chunk.steps.start + index
            yield _StepTensors(
                gates=gates[index],
                memory=memory[index],
                memory_before=self._memories_before[number],
                output=output[index],
                d_output=d_output[index],
                d_previous_output=self._d_previous_outputs[number],
                d_input=d_input[index],
                d_products=d_products[index],
                hidden=hidden[index],
            )


class _ThroughKernelOnCpu:
    """
    Passes gradients back through the parameter `kernel`, to the inputs and to the previous outputs,
    in one product per step.
    """

    def __init__(self, kernel: torch.Tensor, dtype: torch.dtype) -> None:
        self._to_kernel_inputs = StackedLinear(kernel, dtype=dtype)

    def step(self, step: _StepTensors) -> None:
        d_kernel_inputs = self._to_kernel_inputs(step.d_products)
        for lstm, d_lstm_inputs in enumerate(d_kernel_inputs):
            # Shape: (n_rows, projection_dim) each
            d_input, d_previous_output = d_lstm_inputs.chunk(2, -1)
            step.d_input[lstm].copy_(d_input)
            step.d_previous_output[lstm].add_(d_previous_output)

    def chunk(self, d_products: torch.Tensor, d_inputs: torch.Tensor) -> None:
        """Does nothing: `step` has filled the gradients of the inputs."""


class _ThroughKernelOnGpu:
    """
    `_ThroughKernelOnCpu` with fewer launches: each step adds to the gradients of the previous
    outputs in one GPU kernel, and the gradients of the inputs are one product per chunk.
    """

    def __init__(self, kernel: torch.Tensor, dtype: torch.dtype) -> None:
        input_weight, recurrent_weight = kernel.chunk(2, 1)
        self._to_inputs = StackedLinear(input_weight, dtype=dtype)
        self._to_previous_outputs = StackedLinear(recurrent_weight, dtype=dtype)

    def step(self, step: _StepTensors) -> None:
        self._to_previous_outputs(step.d_products, step.d_previous_output)

    def chunk(self, d_products: torch.Tensor, d_inputs: torch.Tensor) -> None:
        """Fills the gradients of the inputs at the words of a chunk."""
        clipped_into(d_inputs, self._to_inputs(d_products), None)


def _previous_or_zero(values: torch.Tensor, batch_sizes: Sequence[int]) -> list[torch.Tensor]:
    """For each step, the values at the previous words: zero at the first step."""
    zeros = torch.zeros_like(values[:, : batch_sizes[0]])
    return previous_values(values, zeros, batch_sizes)


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """`total += left @ right`, in one pass over the total if it has the type of the product."""
    if left.dtype == total.dtype:
        total.baddbmm_(left, right)
    else:
        total += left @ right
