"""
Recurrent layers over packed sentences, from the zero state, with a custom gradient.

The backward direction reads mirrored sentences, so both directions have the same number of
sentences at each step. The loops over the words compute only what depends on the previous word, for
all directions in each call. In the backward pass, the gradient of the weights is one product over
all words.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.lstm.cell import Cell
from elmo_tasks.bilm.packing import PackedBatch, pack, previous_values

__all__ = ["RecurrentLayerFunction", "run_layer", "run_packed"]


def run_packed(
    inputs: torch.Tensor,
    mask: torch.Tensor,
    run: Callable[[torch.Tensor, PackedBatch], torch.Tensor],
) -> torch.Tensor:
    """
    Runs layers over packed words: from shape `(batch_size, timesteps, input_dim)`, with words
    before padding, to `(batch_size, timesteps, output_dim)`, zero where there is no word.
    """
    batch = pack(mask.sum(-1).cpu().numpy()).to(mask.device)
    positions = batch.positions(mask.size(1))
    # Shape: (n_words, output_dim)
    words = run(inputs.flatten(0, 1).index_select(0, positions), batch)
    # Shape: (batch_size * timesteps, output_dim)
    outputs = words.new_zeros(mask.numel(), words.size(-1)).index_copy(0, positions, words)
    return outputs.view(*mask.shape, words.size(-1))


def run_layer(
    cell: Cell,
    words: torch.Tensor,
    batch: PackedBatch,
    input_weight: torch.Tensor,
    state_weight: torch.Tensor,
    bias: torch.Tensor,
    dropout_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    From packed words, of shape `(n_words, input_dim)`, to shape `(n_words, n_directions * dim)`.

    The weights of the previous output, of shape `(n_directions, n * dim, dim)`, are for the first
    blocks of the cell's products; those of the words, of shape
    `(n_directions, n * dim, input_dim)`, for the last. The bias is for all. The dropout mask, of
    shape `(n_directions, n_sentences, dim)`, is for the output on its way to the next word.
    """
    scales = bias.new_tensor(cell.scales).repeat_interleave(state_weight.size(-1))
    input_weight = input_weight * scales[-input_weight.size(1) :, None]
    # The outputs are still halved.
    state_weight = state_weight * (2.0 * scales[: state_weight.size(1), None])
    outputs: torch.Tensor = RecurrentLayerFunction.apply(
        cell, batch, words, input_weight, state_weight, bias * scales, dropout_mask
    )
    return torch.add(outputs.new_tensor(-2.0 * cell.start), outputs, alpha=2.0)


@dataclass(slots=True, kw_only=True)
class _Step:
    """
    A step of the forward pass: views of all products of its words, and of what the cell fills.
    """

    recurrent: torch.Tensor
    """The products that include the previous output: shape `(n_directions, n_rows, n * dim)`."""
    logistic: torch.Tensor
    """The blocks that become their logistic function."""
    gates: Any
    values: Any


@dataclass(slots=True, kw_only=True)
class _StepBack:
    """
    A step of the backward pass, with the derivatives of the cell: the gradients in `Cell.backward`.
    """

    d_recurrent: torch.Tensor
    d_output: torch.Tensor
    d_products: torch.Tensor
    derivatives: Any


class RecurrentLayerFunction(torch.autograd.Function):
    """`run_layer` with weights and bias that are scaled for the cell, to the cell's own outputs."""

    @staticmethod
    def forward(ctx, cell, batch, words, input_weight, state_weight, bias, dropout_mask):
        n_directions, n_recurrent, dim = state_weight.shape
        inputs = _in_directions([words] * n_directions, batch)
        # The products without the previous outputs; they become the gates. Shape: (n_directions,
        # n_words, n * dim)
        gates = _input_side(inputs, input_weight, bias)
        # Shape: (n_values, n_directions, n_words, dim)
        values = words.new_empty(len(cell.values._fields), n_directions, len(words), dim)
        # Shape: (n_directions, dim, n_recurrent)
        recurrent_weight = state_weight.transpose(1, 2).contiguous()
        # Shape: (n_directions, n_sentences, dim)
        memory = words.new_full((n_directions, batch.n_sentences, dim), cell.start)
        state = memory
        for step in _steps(cell, gates, values, n_recurrent, batch.batch_sizes):
            n_rows = step.recurrent.size(1)
            torch.baddbmm(
                step.recurrent, _first_rows(state, n_rows), recurrent_weight, out=step.recurrent
            )
            step.logistic.sigmoid_()
            cell.forward(_first_rows(memory, n_rows), step.gates, step.values)
            memory = step.values[0]
            state = step.values[-1]
            if dropout_mask is not None:
                state = state * _first_rows(dropout_mask, n_rows)
        ctx.save_for_backward(gates, values, input_weight, state_weight, dropout_mask, *inputs)
        ctx.cell = cell
        ctx.batch = batch
        return torch.cat(_in_directions(values[-1], batch), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gates, values, input_weight, state_weight, dropout_mask, *inputs = ctx.saved_tensors
        cell: Cell = ctx.cell
        batch: PackedBatch = ctx.batch
        memory_before = _before(values[0], cell.start, batch)
        outputs_before = _before(values[-1], cell.start, batch)
        d_products = torch.empty_like(gates)
        derivatives = cell.derivatives(gates, cell.values(*values), memory_before, d_products)
        d_inputs = d_products[..., -input_weight.size(1) :]
        d_recurrent = d_products[..., : state_weight.size(1)]
        # Shape: (n_directions, n_words, dim)
        d_outputs = torch.stack(_in_directions(d_words.chunk(len(state_weight), -1), batch))
        steps = _steps_back(d_recurrent, d_outputs, d_products, derivatives, batch.batch_sizes)
        _run_back(cell, steps, state_weight, dropout_mask)
        # The gradients of the weights, over all words.
        if dropout_mask is not None:
            outputs_before *= dropout_mask.index_select(1, batch.sentences)
        d_input_weight = torch.stack(
            [d_input.t() @ words for d_input, words in zip(d_inputs, inputs, strict=True)]
        )
        d_all_words = None
        if ctx.needs_input_grad[2]:
            d_all_words, *backward = _in_directions(d_inputs @ input_weight, batch)
            for d_backward_words in backward:
                d_all_words.add_(d_backward_words)
        d_state_weight = d_recurrent.transpose(1, 2) @ outputs_before
        return None, None, d_all_words, d_input_weight, d_state_weight, d_products.sum(1), None


def _input_side(
    inputs: list[torch.Tensor], input_weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """
    The bias, and in the last blocks also the products with the words: shape
    `(n_directions, n_words, n * dim)`.
    """
    n_constant = bias.size(1) - input_weight.size(1)
    products = inputs[0].new_empty(len(inputs), len(inputs[0]), bias.size(1))
    products[..., :n_constant] = bias[:, None, :n_constant]
    for direction, words in enumerate(inputs):
        torch.addmm(
            bias[direction, n_constant:],
            words,
            input_weight[direction].t(),
            out=products[direction, :, n_constant:],
        )
    return products


def _steps(
    cell: Cell,
    gates: torch.Tensor,
    values: torch.Tensor,
    n_recurrent: int,
    batch_sizes: list[int],
) -> Iterator[_Step]:
    """The steps in order. All tensors are split at once, because slicing is slow in loops."""
    dim = values.size(-1)
    logistic_columns = slice(cell.logistic.start * dim, cell.logistic.stop * dim)
    recurrent = torch.split(gates[..., :n_recurrent], batch_sizes, 1)
    logistic = torch.split(gates[..., logistic_columns], batch_sizes, 1)
    blocks = [torch.split(block, batch_sizes, 1) for block in cell.blocks(gates)]
    all_values = [torch.split(value, batch_sizes, 1) for value in values]
    gates_of_steps = map(cell.gates, *blocks)
    values_of_steps = map(cell.values, *all_values)
    for number, (step_gates, step_values) in enumerate(
        zip(gates_of_steps, values_of_steps, strict=True)
    ):
        yield _Step(
            recurrent=recurrent[number],
            logistic=logistic[number],
            gates=step_gates,
            values=step_values,
        )


def _steps_back(
    d_recurrent: torch.Tensor,
    d_outputs: torch.Tensor,
    d_products: torch.Tensor,
    derivatives: Any,
    batch_sizes: list[int],
) -> list[_StepBack]:
    """The steps in order. The derivatives are a named tuple of the cell."""
    dim = d_outputs.size(-1)
    # Shape: (n_directions, n_words, n_blocks, dim)
    d_blocks = d_products.unflatten(-1, (-1, dim))
    d_recurrent_of_steps = torch.split(d_recurrent, batch_sizes, 1)
    d_outputs_of_steps = torch.split(d_outputs, batch_sizes, 1)
    d_blocks_of_steps = torch.split(d_blocks, batch_sizes, 1)
    split_derivatives = [torch.split(derivative, batch_sizes, 1) for derivative in derivatives]
    derivatives_of_steps = map(type(derivatives), *split_derivatives)
    return [
        _StepBack(
            d_recurrent=d_recurrent_of_steps[number],
            d_output=d_outputs_of_steps[number],
            d_products=d_blocks_of_steps[number],
            derivatives=step_derivatives,
        )
        for number, step_derivatives in enumerate(derivatives_of_steps)
    ]


def _run_back(
    cell: Cell,
    steps: list[_StepBack],
    state_weight: torch.Tensor,
    dropout_mask: torch.Tensor | None,
) -> None:
    """Fills the gradients of the products, from the last step to the first."""
    if not steps:
        return
    # One row per sentence, zero until its last word.
    d_memory = torch.zeros_like(steps[0].d_output)
    for number in reversed(range(len(steps))):
        step = steps[number]
        n_rows = step.d_output.size(1)
        step_d_memory = _first_rows(d_memory, n_rows)
        if number == 0:
            cell.backward(step.d_output, None, step_d_memory, step.d_products, step.derivatives)
            return
        d_previous = _first_rows(steps[number - 1].d_output, n_rows)
        cell.backward(step.d_output, d_previous, step_d_memory, step.d_products, step.derivatives)
        if dropout_mask is None:
            torch.baddbmm(d_previous, step.d_recurrent, state_weight, out=d_previous)
        else:
            d_state = step.d_recurrent @ state_weight
            d_previous.addcmul_(d_state, _first_rows(dropout_mask, n_rows))


def _before(values: torch.Tensor, start: float, batch: PackedBatch) -> torch.Tensor:
    """
    The values at the previous words, of shape `(n_directions, n_words, dim)`; `start` at the first
    words.
    """
    first = values.new_full((len(values), batch.n_sentences, values.size(-1)), start)
    # A batch may have no words.
    return torch.cat([first[:, :0], *previous_values(values, first, batch.batch_sizes)], 1)


def _in_directions(tensors: Iterable[torch.Tensor], batch: PackedBatch) -> list[torch.Tensor]:
    """
    The forward direction's words unchanged and the backward direction's words mirrored, from one or
    two tensors of shape `(n_words, dim)`. A second call restores the order.
    """
    forward, *backward = tensors
    return [forward, *(tensor.index_select(0, batch.mirrored) for tensor in backward)]


def _first_rows(tensor: torch.Tensor, n_rows: int) -> torch.Tensor:
    """
    The first rows of shape `(n_directions, n, dim)`. Slicing is slow in loops, so it is skipped
    where possible.
    """
    return tensor if tensor.size(1) == n_rows else tensor[:, :n_rows]
