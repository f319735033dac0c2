"""
The recurrence of a highway LSTM over packed sentences, and its gradient.

Sentences lie as `torch.nn.utils.rnn.PackedSequence` lays them out: step by step, and within a step from the longest
sentence to the shortest, so that padding costs nothing. A layer that runs backward visits the same steps from the last
to the first: shorter sentences join as it goes, so no input is ever reversed.

With the products of a word `x` and of the previous output `h`, after dropout (He et al. 2017, section 2.2; `s` is the
logistic function):

    i, f, g, o, r = s(z_i), s(z_f), tanh(z_g), s(z_o), s(z_r)       z = W_x x + W_h h + b
    c_t = f * c_{t-1} + i * g
    h_t = r * o * tanh(c_t) + (1 - r) * (V_x x)

A logistic function costs a fraction of a hyperbolic tangent, so `tanh(x)` is computed as `2 s(2 x) - 1` with weights
that are doubled for `g`: one logistic function serves all five gates.
"""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.modules.recurrent.packed_batch import PackedBatch

__all__ = ["HighwayRecurrence"]

_N_GATES = 5
_CANDIDATE = 2


class HighwayRecurrence(torch.autograd.Function):
    """
    A layer over a packed batch. In the backward pass, only the recurrent part is computed step by step; the gradient of
    the weights is one product over all words.

    `HighwayRecurrence.apply(products, carried, weight, dropout_mask, batch, runs_backward)` takes `products`, of shape
    `(n_words, 5 * dim)`, the part of the input and the bias in the gates i, f, g, o, r; `carried`, of shape
    `(n_words, dim)`, what the highway carries past the memory; `weight`, of shape `(5 * dim, dim)`, the weights of the
    previous output; `dropout_mask`, of shape `(n_sentences, dim)`, or `None`, the dropout of the previous output; and
    the `PackedBatch`. It returns the outputs, of shape `(n_words, dim)`.
    """

    @staticmethod
    def forward(ctx, products, carried, weight, dropout_mask, batch, runs_backward):
        recurrent_side = _with_doubled_candidate(weight).t()
        gates = _with_doubled_candidate(products, -1)
        outputs, memories = torch.empty_like(carried), torch.empty_like(carried)
        # With a row for each sentence, zero until its first word comes. Shape: (n_sentences, dim)
        memory, state = carried.new_zeros(2, batch.n_sentences, carried.size(-1))
        for rows in batch.steps[::-1] if runs_backward else batch.steps:
            n_now = rows.stop - rows.start
            # Shape: (n_now, 5 * dim)
            gates_now = gates[rows].addmm_(state[:n_now], recurrent_side).sigmoid_()
            # Shape: (n_now, dim), each
            input_gate, forget_gate, candidate, output_gate, highway_gate = gates_now.chunk(_N_GATES, -1)
            memory_now = memory[:n_now].mul_(forget_gate).addcmul_(input_gate, candidate - 0.5, value=2.0)
            memories[rows] = memory_now
            hidden = torch.tanh(memory_now).mul_(output_gate)
            output = torch.lerp(carried[rows], hidden, highway_gate, out=outputs[rows])
            if dropout_mask is None:
                state[:n_now] = output
            else:
                torch.mul(output, dropout_mask[:n_now], out=state[:n_now])
        ctx.save_for_backward(gates, memories, outputs, carried, weight, dropout_mask)
        ctx.batch, ctx.runs_backward = batch, runs_backward
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gates, memories, outputs, carried, weight, dropout_mask = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        previous = batch.after if ctx.runs_backward else batch.before
        d_products, to_memory = _slopes(gates, memories, carried, previous)
        # Shape: (n_words, 5, dim)
        by_gate = d_products.unflatten(-1, (_N_GATES, -1))
        forget_gates = gates.chunk(_N_GATES, -1)[1]

        d_outputs = d_outputs.clone()
        # The gradients of the state that a step passes to the next. Shape: (n_sentences, dim)
        d_memory, d_state = d_outputs.new_zeros(2, batch.n_sentences, d_outputs.size(-1))
        for rows in batch.steps if ctx.runs_backward else batch.steps[::-1]:
            n_now = rows.stop - rows.start
            d_output = d_outputs[rows].add_(d_state[:n_now])
            d_memory_now = d_memory[:n_now].addcmul_(d_output, to_memory[rows])
            by_gate[rows, :3].mul_(d_memory_now.unsqueeze(1))
            by_gate[rows, 3:].mul_(d_output.unsqueeze(1))
            d_memory_now.mul_(forget_gates[rows])
            torch.mm(d_products[rows], weight, out=d_state[:n_now])
            if dropout_mask is not None:
                d_state[:n_now].mul_(dropout_mask[:n_now])

        # The input of the recurrent side at each word. Shape: (n_words, dim)
        read = _with_zero_row(outputs)[previous]
        if dropout_mask is not None:
            read *= dropout_mask[batch.sentences]
        d_carried = d_outputs * (1.0 - gates.chunk(_N_GATES, -1)[4])
        return d_products, d_carried, d_products.t() @ read, None, None, None


def _slopes(
    gates: torch.Tensor, memories: torch.Tensor, carried: torch.Tensor, previous: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The derivatives of the cell at each word: of the memory by the products for i, f and g, and of the output by those
    for o and r, of shape `(n_words, 5 * dim)`; and of the output by the memory, of shape `(n_words, dim)`.
    """
    # Shape: (n_words, dim), each
    input_gate, _, halved, output_gate, highway_gate = gates.chunk(_N_GATES, -1)
    candidate = 2.0 * halved - 1.0
    squashed = torch.tanh(memories)
    # The slope of the logistic function: right for all but the candidate, which is a hyperbolic tangent.
    slopes = gates * (1.0 - gates)
    of_input, of_forget, of_candidate, of_output, of_highway = slopes.chunk(_N_GATES, -1)
    of_input.mul_(candidate)
    of_forget.mul_(_with_zero_row(memories)[previous])
    of_candidate.mul_(input_gate).mul_(4.0)
    of_output.mul_(squashed).mul_(highway_gate)
    of_highway.mul_(output_gate * squashed - carried)
    return slopes, highway_gate * output_gate * (1.0 - squashed.square())


def _with_doubled_candidate(tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """A copy in which the part of `g`, of a dimension with i, f, g, o, r, is doubled."""
    doubled = tensor.clone()
    doubled.chunk(_N_GATES, dim)[_CANDIDATE].mul_(2.0)
    return doubled


def _with_zero_row(tensor: torch.Tensor) -> torch.Tensor:
    return torch.cat([tensor, tensor.new_zeros(1, tensor.size(-1))])
