"""
A layer of GRUs over packed sentences, and its gradient.

With the products `z` of a word and `y` of the previous output (`s` is the logistic function, gates are in the order of
torch):

    r, u = s(z_r + y_r), s(z_u + y_u)       z = W x + b        y = U h + c
    n'   = s(2 (z_n + r * y_n))
    h'_t = (1 - u) * n' + u * h'_{t-1}

This is `torch.nn.GRU` with the candidate `2 n' - 1 = tanh(z_n + r * y_n)` and the output `2 h' - 1`: both are
moved from between -1 and 1 to between 0 and 1, where a step has nothing but logistic functions and an interpolation.
They cost a fraction of a hyperbolic tangent on some processors. `y = 2 U h' + (c - U 1)`, so that the products of the
moved output are right with other weights and biases. The loop over the words calls only what depends on the previous
word, with all directions in each call: for the batches of tasks, a call costs as much as what it computes.
"""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.modules.recurrent.packed_batch import (
    PackedBatch,
    directions_of,
    first_rows,
    gradient_of_words,
    inputs_of,
    previous_of,
    words_of,
)

__all__ = ["GruRecurrence"]


class GruRecurrence(torch.autograd.Function):
    """
    One layer, from the zero state. In the backward pass only the recurrent part is computed step by step; the gradient
    of each weight is one product over all words.

    `GruRecurrence.apply` takes and returns what `LstmRecurrence.apply` does, with the parameters of `torch.nn.GRU`.
    """

    @staticmethod
    def forward(
        ctx: Any, words: torch.Tensor, batch: PackedBatch, n_directions: int, *parameters: torch.Tensor
    ) -> torch.Tensor:
        n_kinds = len(parameters) // n_directions
        input_weights, state_weights, *biases = (parameters[kind::n_kinds] for kind in range(n_kinds))
        dim, n_words, sizes = state_weights[0].size(1), len(words), batch.batch_sizes
        # Shape: (n_directions, 3 * dim, dim), with doubled candidates
        state_weight = torch.stack(state_weights)
        state_weight[:, 2 * dim :].mul_(2.0)
        # Shape: (n_directions, 3 * dim)
        state_bias = -state_weight.sum(2)
        input_bias = torch.zeros_like(state_bias)
        if biases:
            input_bias, bias = map(torch.stack, biases)
            state_bias += bias
            state_bias[:, 2 * dim :] += bias[:, 2 * dim :]
        # Shape: (n_directions, dim, 3 * dim)
        recurrent_side = (2.0 * state_weight).transpose(1, 2).contiguous()

        # r, u, and the products of the output for n. Shape: (n_directions, n_words, 3 * dim)
        gates = words.new_empty(n_directions, n_words, 3 * dim)
        gates[..., 2 * dim :] = state_bias[:, None, 2 * dim :]
        # Shape: (n_directions, n_words, dim)
        candidates = words.new_empty(n_directions, n_words, dim)
        for number, inputs in enumerate(inputs_of(words, n_directions, batch)):
            both = input_bias[number, : 2 * dim] + state_bias[number, : 2 * dim]
            of_gates, of_candidates = input_weights[number].split([2 * dim, dim])
            torch.addmm(both, inputs, of_gates.t(), out=gates[number, :, : 2 * dim])
            torch.addmm(input_bias[number, 2 * dim :], inputs, of_candidates.t(), out=candidates[number])
        candidates.mul_(2.0)

        outputs = torch.empty_like(candidates)
        state = words.new_full((n_directions, batch.n_sentences, dim), 0.5)
        reset_gates, update_gates, recurrent = gates.chunk(3, -1)
        each = (gates, gates[..., : 2 * dim], reset_gates, update_gates, recurrent, candidates, outputs)
        for now, both_gates, r, u, y, n, h in zip(*(tensor.split(sizes, 1) for tensor in each), strict=True):
            state = first_rows(state, now.size(1))
            torch.baddbmm(now, state, recurrent_side, out=now)
            both_gates.sigmoid_()
            n.addcmul_(r, y).sigmoid_()
            state = torch.lerp(n, state, u, out=h)
        outputs.mul_(2.0).sub_(1.0)
        ctx.save_for_backward(words, gates, candidates, outputs, *parameters)
        ctx.batch = batch
        return words_of(outputs, batch)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        words, gates, candidates, outputs, *parameters = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        n_directions, _, dim = outputs.shape
        n_kinds = len(parameters) // n_directions
        input_weights, state_weights = (parameters[kind::n_kinds] for kind in range(2))
        sizes, state_weight = batch.batch_sizes, torch.stack(state_weights)
        # Shape: (n_directions, n_words, dim)
        previous = previous_of(outputs, batch)
        # The gradients of y. Shape: (n_directions, n_words, 3 * dim) and (n_directions, n_words, dim)
        d_products, of_candidate = _slopes(gates, candidates, previous)
        # Shape: (n_directions, n_words, 3, dim)
        by_gate = d_products.unflatten(-1, (3, dim))

        d_outputs = directions_of(d_words, dim, batch)
        d_steps = d_outputs.split(sizes, 1)
        each = (d_products, by_gate, gates.chunk(3, -1)[1])
        steps = list(zip(*(tensor.split(sizes, 1) for tensor in each), strict=True))
        for step in reversed(range(len(steps))):
            products, by_output, update_gate = steps[step]
            d_output = d_steps[step]
            by_output.mul_(d_output.unsqueeze(2))
            if step:
                # The gradient of the output at the word before.
                d_previous = first_rows(d_steps[step - 1], sizes[step]).addcmul_(d_output, update_gate)
                torch.baddbmm(d_previous, products, state_weight, out=d_previous)

        d_state_weight = d_products.transpose(1, 2) @ previous
        d_state_bias = d_products.sum(1)
        # From here the gradients of z, which for r and u are the same.
        torch.mul(of_candidate, d_outputs, out=d_products[..., 2 * dim :])
        inputs = inputs_of(words, n_directions, batch)
        d_input_weights = [part.t() @ each for part, each in zip(d_products, inputs, strict=True)]
        by_kind = (d_input_weights, d_state_weight, d_products.sum(1), d_state_bias)[:n_kinds]
        d_inputs = gradient_of_words(d_products, input_weights, batch) if ctx.needs_input_grad[0] else None
        return d_inputs, None, None, *(gradient for direction in zip(*by_kind, strict=True) for gradient in direction)


def _slopes(gates: torch.Tensor, candidates: torch.Tensor, previous: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The derivatives of torch's output at each word: by the products `y`, of shape `(n_directions, n_words, 3 * dim)`,
    and by the product `z_n`, of shape `(n_directions, n_words, dim)`.
    """
    dim = candidates.size(-1)
    # Shape: (n_directions, n_words, dim), each; `doubled` products
    reset_gates, update_gates, doubled = gates.chunk(3, -1)
    both_gates = gates[..., : 2 * dim]
    slopes = torch.empty_like(gates)
    of_reset, of_update, of_recurrent = slopes.chunk(3, -1)
    # The slope of the logistic function.
    torch.addcmul(both_gates, both_gates, both_gates, value=-1.0, out=slopes[..., : 2 * dim])
    of_candidate = torch.addcmul(candidates, candidates, candidates, value=-1.0)
    of_candidate = of_candidate.addcmul_(of_candidate, update_gates, value=-1.0).mul_(2.0)
    of_reset.mul_(of_candidate).mul_(doubled)
    of_candidate.mul_(2.0)
    torch.mul(of_candidate, reset_gates, out=of_recurrent)
    of_update.mul_(torch.sub(previous, candidates, alpha=2.0).add_(1.0))
    return slopes, of_candidate
