"""
Recurrent layers over packed sentences, from the zero state, with a custom gradient.

The backward direction reads mirrored sentences, so both directions have the same number of sentences at each step. The
loops over the words compute only what depends on the previous word, for all directions in each call. In the backward
pass, the gradient of the weights is one product over all words.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

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


class RecurrentLayerFunction(torch.autograd.Function):
    """`run_layer` with weights and bias that are scaled for the cell, to the cell's own outputs."""

    @staticmethod
    def forward(ctx, cell, batch, words, input_weight, state_weight, bias, dropout_mask):
        n_directions, n_recurrent, dim = state_weight.shape
        n_constant = bias.size(1) - input_weight.size(1)
        # Shape: (n_directions, n_words, n_blocks * dim)
        gates = words.new_empty(n_directions, len(words), bias.size(1))
        gates[..., :n_constant] = bias[:, None, :n_constant]
        inputs = _in_directions([words] * n_directions, batch)
        for gate, part, weight, offset in zip(gates, inputs, input_weight, bias, strict=True):
            torch.addmm(offset[n_constant:], part, weight.t(), out=gate[:, n_constant:])
        recurrent_side = state_weight.transpose(1, 2).contiguous()
        logistic = gates[..., cell.logistic.start * dim : cell.logistic.stop * dim]
        # Shape: (n_kept, n_directions, n_words, dim)
        kept = words.new_empty(cell.n_kept, n_directions, len(words), dim)
        memory, state = words.new_full((2, n_directions, batch.n_sentences, dim), cell.start)
        each = (gates[..., :n_recurrent], logistic, *gates.split(dim, -1), *kept)
        for now, gate, *parts in zip(*(tensor.split(batch.batch_sizes, 1) for tensor in each), strict=True):
            n_now = now.size(1)
            torch.baddbmm(now, _first_rows(state, n_now), recurrent_side, out=now)
            gate.sigmoid_()
            cell.forward(_first_rows(memory, n_now), *parts)
            memory, state = parts[-cell.n_kept], parts[-1]
            if dropout_mask is not None:
                state = state * _first_rows(dropout_mask, n_now)
        ctx.save_for_backward(gates, kept, input_weight, state_weight, dropout_mask, *inputs)
        ctx.cell, ctx.batch = cell, batch
        return torch.cat(_in_directions(kept[-1], batch), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gates, kept, input_weight, state_weight, dropout_mask, *inputs = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        n_directions, n_recurrent, dim = state_weight.shape
        first = kept.new_full((n_directions, batch.n_sentences, dim), ctx.cell.start)
        # A batch may have no words.
        before, outputs_before = (
            torch.cat([first[:, :0], *previous_values(values, first, batch.batch_sizes)], 1)
            for values in (kept[0], kept[-1])
        )
        d_products = torch.empty_like(gates)
        derivatives = ctx.cell.derivatives(gates, kept, before, d_products)
        d_inputs, d_recurrent = d_products[..., -input_weight.size(1) :], d_products[..., :n_recurrent]

        d_outputs = torch.stack(_in_directions(d_words.chunk(n_directions, -1), batch))
        # One row per sentence, zero until its last word.
        d_memory = d_words.new_zeros(n_directions, batch.n_sentences, dim)
        each = (d_recurrent, d_outputs, d_products.unflatten(-1, (-1, dim)), *derivatives)
        steps = list(zip(*(tensor.split(batch.batch_sizes, 1) for tensor in each), strict=True))
        while steps:
            now, d_output, *parts = steps.pop()
            n_now = now.size(1)
            # The gradient of the output at the word before.
            d_previous = _first_rows(steps[-1][1], n_now) if steps else None
            ctx.cell.backward(d_output, d_previous, _first_rows(d_memory, n_now), *parts)
            if d_previous is None:
                break
            if dropout_mask is None:
                torch.baddbmm(d_previous, now, state_weight, out=d_previous)
            else:
                d_previous.addcmul_(now @ state_weight, _first_rows(dropout_mask, n_now))

        if dropout_mask is not None:
            outputs_before *= dropout_mask.index_select(1, batch.sentences)
        d_input_weight = torch.stack([part.t() @ each for part, each in zip(d_inputs, inputs, strict=True)])
        of_words = None
        if ctx.needs_input_grad[2]:
            of_words = functools.reduce(torch.Tensor.add_, _in_directions(d_inputs @ input_weight, batch))
        return (
            None,
            None,
            of_words,
            d_input_weight,
            d_recurrent.transpose(1, 2) @ outputs_before,
            d_products.sum(1),
            None,
        )


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
