"""
Recurrent layers over packed sentences, from the zero state, with a custom gradient.

The backward direction reads mirrored sentences, so both directions have the same number of sentences at each step. The
loops over the words compute only what depends on the previous word, for all directions in each call. In the backward
pass, the gradient of the weights is one product over all words.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.lstm.cell import Cell
from elmo_tasks.bilm.packing import PackedBatch, pack, previous_values

__all__ = ["RecurrentLayerFunction", "run_layer", "run_packed"]


def run_packed(
    inputs: torch.Tensor, mask: torch.Tensor, run: Callable[[torch.Tensor, PackedBatch], torch.Tensor]
) -> torch.Tensor:
    """
    Runs layers over packed words: from shape `(batch_size, timesteps, input_dim)`, with words before padding, to
    `(batch_size, timesteps, output_dim)`, zero where there is no word.
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

    The weights of the previous output, of shape `(n_directions, n * dim, dim)`, are for the first blocks of the cell's
    products; those of the words, of shape `(n_directions, n * dim, input_dim)`, for the last. The bias is for all.
    The dropout mask, of shape `(n_directions, n_sentences, dim)`, is for the output on its way to the next word.
    """
    scales = bias.new_tensor(cell.scales).repeat_interleave(state_weight.size(-1))
    input_weight = input_weight * scales[-input_weight.size(1) :, None]
    # The outputs are still halved.
    state_weight = state_weight * (2.0 * scales[: state_weight.size(1), None])
    parameters = input_weight, state_weight, bias * scales
    outputs: torch.Tensor = RecurrentLayerFunction.apply(cell, batch, words, *parameters, dropout_mask)
    return torch.add(outputs.new_tensor(-2.0 * cell.start), outputs, alpha=2.0)


class _Step(NamedTuple):
    """A step of the forward pass: views of all products of its words, and of what the cell fills."""

    recurrent: torch.Tensor
    """The products that include the previous output: shape `(n_directions, n_rows, n * dim)`."""
    logistic: torch.Tensor
    gates: Any
    values: Any


class _StepBack(NamedTuple):
    """A step of the backward pass, with the derivatives of the cell: the gradients in `Cell.backward`."""

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
        # The products without the previous outputs; they become the gates. Shape: (n_directions, n_words, n * dim)
        gates = _input_side(inputs, input_weight, bias)
        # Shape: (n_values, n_directions, n_words, dim)
        values = words.new_empty(len(cell.values._fields), n_directions, len(words), dim)
        recurrent_side = state_weight.transpose(1, 2).contiguous()
        memory, state = words.new_full((2, n_directions, batch.n_sentences, dim), cell.start)
        for step in _steps(cell, gates, values, n_recurrent, batch.batch_sizes):
            n_now = step.recurrent.size(1)
            torch.baddbmm(step.recurrent, _first_rows(state, n_now), recurrent_side, out=step.recurrent)
            step.logistic.sigmoid_()
            cell.forward(_first_rows(memory, n_now), step.gates, step.values)
            memory, state = step.values[0], step.values[-1]
            if dropout_mask is not None:
                state = state * _first_rows(dropout_mask, n_now)
        ctx.save_for_backward(gates, values, input_weight, state_weight, dropout_mask, *inputs)
        ctx.cell, ctx.batch = cell, batch
        return torch.cat(_in_directions(values[-1], batch), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gates, values, input_weight, state_weight, dropout_mask, *inputs = ctx.saved_tensors
        cell, batch = ctx.cell, ctx.batch
        before, outputs_before = (_before(each, cell.start, batch) for each in (values[0], values[-1]))
        d_products = torch.empty_like(gates)
        derivatives = cell.derivatives(gates, cell.values(*values), before, d_products)
        d_inputs = d_products[..., -input_weight.size(1) :]
        d_recurrent = d_products[..., : state_weight.size(1)]
        d_outputs = torch.stack(_in_directions(d_words.chunk(len(state_weight), -1), batch))
        steps = _steps_back(d_recurrent, d_outputs, d_products, derivatives, batch.batch_sizes)
        _run_back(cell, steps, state_weight, dropout_mask)
        # Over all words.
        if dropout_mask is not None:
            outputs_before *= dropout_mask.index_select(1, batch.sentences)
        d_input_weight = torch.stack([part.t() @ each for part, each in zip(d_inputs, inputs, strict=True)])
        of_words = None
        if ctx.needs_input_grad[2]:
            of_words = functools.reduce(torch.Tensor.add_, _in_directions(d_inputs @ input_weight, batch))
        d_state_weight = d_recurrent.transpose(1, 2) @ outputs_before
        return None, None, of_words, d_input_weight, d_state_weight, d_products.sum(1), None


def _input_side(inputs: list[torch.Tensor], input_weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The bias, and in the last blocks also the products with the words: shape `(n_directions, n_words, n * dim)`."""
    n_constant = bias.size(1) - input_weight.size(1)
    products = inputs[0].new_empty(len(inputs), len(inputs[0]), bias.size(1))
    products[..., :n_constant] = bias[:, None, :n_constant]
    for to_fill, words, weight, offset in zip(products, inputs, input_weight, bias, strict=True):
        torch.addmm(offset[n_constant:], words, weight.t(), out=to_fill[:, n_constant:])
    return products


def _steps(
    cell: Cell, gates: torch.Tensor, values: torch.Tensor, n_recurrent: int, batch_sizes: list[int]
) -> Iterator[_Step]:
    dim = values.size(-1)
    logistic = gates[..., cell.logistic.start * dim : cell.logistic.stop * dim]
    # All are split in one pass, because slicing is slow in loops.
    recurrent, logistic, *each = (
        tensor.split(batch_sizes, 1) for tensor in (gates[..., :n_recurrent], logistic, *cell.blocks(gates), *values)
    )
    n_blocks = len(cell.gates._fields)
    gates_of_steps = map(cell.gates, *each[:n_blocks])
    return map(_Step, recurrent, logistic, gates_of_steps, map(cell.values, *each[n_blocks:]))


def _steps_back(
    d_recurrent: torch.Tensor, d_outputs: torch.Tensor, d_products: torch.Tensor, derivatives: Any, sizes: list[int]
) -> list[_StepBack]:
    tensors = d_recurrent, d_outputs, d_products.unflatten(-1, (-1, d_outputs.size(-1)))
    of_cell = map(type(derivatives), *(tensor.split(sizes, 1) for tensor in derivatives))
    return list(map(_StepBack, *(tensor.split(sizes, 1) for tensor in tensors), of_cell))


def _run_back(cell: Any, steps: list[_StepBack], state_weight: torch.Tensor, dropout_mask: torch.Tensor | None) -> None:
    """Fills the gradients of the products, from the last step to the first."""
    if not steps:
        return
    # One row per sentence, zero until its last word.
    d_memory = torch.zeros_like(steps[0].d_output)
    for step, before in zip(reversed(steps), [*reversed(steps[:-1]), None], strict=True):
        n_now = step.d_output.size(1)
        d_previous = None if before is None else _first_rows(before.d_output, n_now)
        cell.backward(step.d_output, d_previous, _first_rows(d_memory, n_now), step.d_products, step.derivatives)
        if d_previous is None:
            break
        if dropout_mask is None:
            torch.baddbmm(d_previous, step.d_recurrent, state_weight, out=d_previous)
        else:
            d_previous.addcmul_(step.d_recurrent @ state_weight, _first_rows(dropout_mask, n_now))


def _before(values: torch.Tensor, start: float, batch: PackedBatch) -> torch.Tensor:
    """The values at the previous words, of shape `(n_directions, n_words, dim)`; `start` at the first words."""
    first = values.new_full((len(values), batch.n_sentences, values.size(-1)), start)
    # A batch may have no words.
    return torch.cat([first[:, :0], *previous_values(values, first, batch.batch_sizes)], 1)


def _in_directions(parts: Iterable[torch.Tensor], batch: PackedBatch) -> list[torch.Tensor]:
    """
    The forward direction's words unchanged and the backward direction's words mirrored, from one or two tensors of
    shape `(n_words, dim)`. A second call restores the order.
    """
    forward, *backward = parts
    return [forward, *(part.index_select(0, batch.mirrored) for part in backward)]


def _first_rows(tensor: torch.Tensor, n_rows: int) -> torch.Tensor:
    """The first rows of shape `(n_directions, n, dim)`. Slicing is slow in loops, so it is skipped where possible."""
    return tensor if tensor.size(1) == n_rows else tensor[:, :n_rows]
