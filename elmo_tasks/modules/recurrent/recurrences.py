"""
A layer of LSTMs or GRUs over packed sentences, from the zero state, and its gradient.

From packed `words`, of shape `(n_words, input_dim)`, to shape `(n_words, n_directions * dim)`. The backward direction
reads mirrored sentences, so both directions have the same number of sentences at each step. The loops over the words
compute only what depends on the previous word, for all directions in each call. In the backward pass, the gradient of
each weight is one product over all words. Logistic functions replace hyperbolic tangents, at a fraction of the cost.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.packing import PackedBatch

__all__ = ["GruRecurrence", "LstmRecurrence"]


class LstmRecurrence(torch.autograd.Function):
    """
    `torch.nn.LSTM`; each of its parameters is passed for all directions before the next one. Here `s` is the logistic
    function, gates are in torch's order, and `z` are the products of a word and of the previous output:

        i, f, g', o = s(z_i), s(z_f), s(2 z_g) - 1/2, s(z_o)        z = W x + b + U h + c
        m_t  = f * m_{t-1} + 4 i g'
        q_t  = s(m_t) - 1/2
        h_t  = 2 o q_t

    The memory `m` is half of torch's, because `tanh(x) = 2 s(2 x) - 1`.
    """

    @staticmethod
    def forward(ctx: Any, words: torch.Tensor, batch: PackedBatch, *parameters: torch.Tensor) -> torch.Tensor:
        input_weights, state_weight, input_bias, state_bias = _by_kind(parameters)
        n_directions, _, dim = state_weight.shape
        # Shape: (n_directions, n_words, 4 * dim)
        gates = _products(words, batch, input_weights, input_bias + state_bias)
        input_gates, forget_gates, candidates, output_gates = gates.chunk(4, -1)
        candidates.mul_(2.0)
        # Doubled, because the outputs are still halved. Shape: (n_directions, dim, 4 * dim)
        recurrent_side = 2.0 * state_weight.transpose(1, 2).contiguous()
        recurrent_side.chunk(4, -1)[2].mul_(2.0)

        # Shape: (n_directions, n_words, dim), each
        memories, squashed, outputs = words.new_empty(3, n_directions, len(words), dim)
        memory, state = words.new_zeros(2, n_directions, batch.n_sentences, dim)
        each = (gates, input_gates, forget_gates, candidates, output_gates, memories, squashed, outputs)
        for now, i, f, g, o, m, q, h in zip(*(tensor.split(batch.batch_sizes, 1) for tensor in each), strict=True):
            memory, state = _first_rows(memory, now.size(1)), _first_rows(state, now.size(1))
            torch.baddbmm(now, state, recurrent_side, out=now).sigmoid_()
            g.sub_(0.5)
            memory = torch.mul(memory, f, out=m).addcmul_(i, g, value=4.0)
            torch.sigmoid(memory, out=q).sub_(0.5)
            state = torch.mul(o, q, out=h)
        outputs.mul_(2.0)
        ctx.save_for_backward(words, gates, memories, squashed, outputs, state_weight, *input_weights)
        ctx.batch = batch
        return torch.cat(_in_directions(outputs, batch), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        words, gates, memories, squashed, outputs, state_weight, *input_weights = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        n_directions, _, dim = outputs.shape
        sizes = batch.batch_sizes
        # Shape: (n_directions, n_words, 4 * dim) and (n_directions, n_words, dim)
        d_products, to_memory = _lstm_slopes(gates, memories, squashed, batch)
        # Shape: (n_directions, n_words, 4, dim)
        by_gate = d_products.unflatten(-1, (4, dim))
        forget_gates = gates.chunk(4, -1)[1]

        d_outputs = torch.stack(_in_directions(d_words.split(dim, -1), batch)).split(sizes, 1)
        # The gradient of the memory, one row per sentence, zero until its last word.
        d_memory = d_words.new_zeros(n_directions, batch.n_sentences, dim)
        each = (d_products, by_gate[..., :3, :], by_gate[..., 3, :], forget_gates, to_memory)
        steps = list(zip(*(tensor.split(sizes, 1) for tensor in each), strict=True))
        for step in reversed(range(len(steps))):
            products, by_memory, by_output, forget_gate, slope = steps[step]
            d_output = d_outputs[step]
            d_memory_now = _first_rows(d_memory, sizes[step]).addcmul_(d_output, slope)
            by_memory.mul_(d_memory_now.unsqueeze(2))
            by_output.mul_(d_output)
            if step:
                d_memory_now.mul_(forget_gate)
                # The gradient of the output at the word before.
                d_previous = _first_rows(d_outputs[step - 1], sizes[step])
                torch.baddbmm(d_previous, products, state_weight, out=d_previous)

        d_inputs, d_input_weights = _input_gradients(ctx, words, batch, d_products, input_weights)
        d_state_weight, d_bias = d_products.transpose(1, 2) @ _previous(outputs, batch), d_products.sum(1)
        # A copy: gradients are clipped in place.
        return d_inputs, None, *d_input_weights, *d_state_weight, *d_bias, *d_bias.clone()


def _lstm_slopes(
    gates: torch.Tensor, memories: torch.Tensor, squashed: torch.Tensor, batch: PackedBatch
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The derivatives of the cell at each word: of torch's memory with respect to the products for i, f and g, and of the
    output with respect to the products for o, of shape `(n_directions, n_words, 4 * dim)`; and of the output with
    respect to torch's memory, of shape `(n_directions, n_words, dim)`.
    """
    # Shape: (n_directions, n_words, dim), each
    input_gates, _, candidates, output_gates = gates.chunk(4, -1)
    # The slope of the logistic function, which is right for all but the candidates: a half was subtracted from them.
    slopes = torch.addcmul(gates, gates, gates, value=-1.0)
    of_input, of_forget, of_candidate, of_output = slopes.chunk(4, -1)
    of_input.mul_(candidates).mul_(2.0)
    of_forget.mul_(_previous(memories, batch)).mul_(0.5)
    torch.mul(candidates, candidates, out=of_candidate).sub_(0.25).mul_(input_gates).mul_(-4.0)
    of_output.mul_(squashed).mul_(2.0)
    return slopes, squashed.square().sub_(0.25).mul_(output_gates).mul_(-4.0)


class GruRecurrence(torch.autograd.Function):
    """
    `torch.nn.GRU`, computed like `LstmRecurrence`. With the products `z` of a word and `y` of the previous output:

        r, u = s(z_r + y_r), s(z_u + y_u)       z = W x + b        y = U h + c
        n'   = s(2 (z_n + r * y_n))
        h'_t = (1 - u) * n' + u * h'_{t-1}

    torch's candidate is `2 n' - 1 = tanh(z_n + r * y_n)` and its output is `2 h' - 1`, so a step needs only logistic
    functions and an interpolation. In terms of `h'`, the products are `y = 2 U h' + (c - U 1)`.
    """

    @staticmethod
    def forward(ctx: Any, words: torch.Tensor, batch: PackedBatch, *parameters: torch.Tensor) -> torch.Tensor:
        input_weights, state_weight, input_bias, state_bias = _by_kind(parameters)
        n_directions, _, dim = state_weight.shape
        # Shape: (n_directions, n_words, 3 * dim) and (n_directions, n_words, dim)
        gates = _products(words, batch, input_weights, input_bias)
        candidates = 2.0 * gates[..., 2 * dim :]
        # `2 U`, and the bias of `y`; the candidate's part is doubled again.
        # Shape: (n_directions, dim, 3 * dim) and (n_directions, 3 * dim)
        recurrent_side = 2.0 * state_weight.transpose(1, 2).contiguous()
        recurrent_side[..., 2 * dim :].mul_(2.0)
        bias = state_bias - state_weight.sum(2)
        bias[:, 2 * dim :].mul_(2.0)
        # Will hold r, u, and the products of the output for n.
        gates[..., 2 * dim :] = 0.0
        gates += bias.unsqueeze(1)

        reset_gates, update_gates, recurrent = gates.chunk(3, -1)
        # Shape: (n_directions, n_words, dim)
        outputs = torch.empty_like(candidates)
        state = words.new_full((n_directions, batch.n_sentences, dim), 0.5)
        each = (gates, gates[..., : 2 * dim], reset_gates, update_gates, recurrent, candidates, outputs)
        steps = zip(*(tensor.split(batch.batch_sizes, 1) for tensor in each), strict=True)
        for now, both_gates, r, u, y, n, h in steps:
            state = _first_rows(state, now.size(1))
            torch.baddbmm(now, state, recurrent_side, out=now)
            both_gates.sigmoid_()
            n.addcmul_(r, y).sigmoid_()
            state = torch.lerp(n, state, u, out=h)
        outputs.mul_(2.0).sub_(1.0)
        ctx.save_for_backward(words, gates, candidates, outputs, state_weight, *input_weights)
        ctx.batch = batch
        return torch.cat(_in_directions(outputs, batch), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        words, gates, candidates, outputs, state_weight, *input_weights = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        dim, sizes = outputs.size(-1), batch.batch_sizes
        # Shape: (n_directions, n_words, dim)
        previous = _previous(outputs, batch)
        # The gradients of y. Shape: (n_directions, n_words, 3 * dim) and (n_directions, n_words, dim)
        d_products, of_candidate = _gru_slopes(gates, candidates, previous)
        # Shape: (n_directions, n_words, 3, dim)
        by_gate = d_products.unflatten(-1, (3, dim))

        d_outputs = torch.stack(_in_directions(d_words.split(dim, -1), batch))
        d_steps = d_outputs.split(sizes, 1)
        each = (d_products, by_gate, gates.chunk(3, -1)[1])
        steps = list(zip(*(tensor.split(sizes, 1) for tensor in each), strict=True))
        for step in reversed(range(len(steps))):
            products, by_output, update_gate = steps[step]
            d_output = d_steps[step]
            by_output.mul_(d_output.unsqueeze(2))
            if step:
                # The gradient of the output at the word before.
                d_previous = _first_rows(d_steps[step - 1], sizes[step]).addcmul_(d_output, update_gate)
                torch.baddbmm(d_previous, products, state_weight, out=d_previous)

        d_state_weight, d_state_bias = d_products.transpose(1, 2) @ previous, d_products.sum(1)
        # From here on, the gradients of z, which are the same for r and u.
        torch.mul(of_candidate, d_outputs, out=d_products[..., 2 * dim :])
        d_inputs, d_input_weights = _input_gradients(ctx, words, batch, d_products, input_weights)
        return d_inputs, None, *d_input_weights, *d_state_weight, *d_products.sum(1), *d_state_bias


def _gru_slopes(
    gates: torch.Tensor, candidates: torch.Tensor, previous: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The derivatives of torch's output at each word: with respect to the products `y`, of shape
    `(n_directions, n_words, 3 * dim)`, and to the product `z_n`, of shape `(n_directions, n_words, dim)`.
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


def _by_kind(parameters: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
    """The input weights as one tensor per direction, and the other parameters, each stacked."""
    n = len(parameters) // 4
    return parameters[:n], *(torch.stack(parameters[first : first + n]) for first in (n, 2 * n, 3 * n))


def _products(
    words: torch.Tensor, batch: PackedBatch, weights: Sequence[torch.Tensor], bias: torch.Tensor
) -> torch.Tensor:
    """The products of the words, including the bias: shape `(n_directions, n_words, n_gates * dim)`."""
    products = words.new_empty(len(weights), len(words), bias.size(1))
    inputs = _in_directions([words] * len(weights), batch)
    for each, weight, offset, product in zip(inputs, weights, bias, products, strict=True):
        torch.addmm(offset, each, weight.t(), out=product)
    return products


def _input_gradients(
    ctx: Any, words: torch.Tensor, batch: PackedBatch, d_products: torch.Tensor, weights: Sequence[torch.Tensor]
) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
    """The gradients of the words, if needed, and of each direction's weights."""
    inputs = _in_directions([words] * len(weights), batch)
    d_weights = [part.t() @ each for part, each in zip(d_products, inputs, strict=True)]
    if not ctx.needs_input_grad[0]:
        return None, d_weights
    d_words = _in_directions((part @ weight for part, weight in zip(d_products, weights, strict=True)), batch)
    return functools.reduce(torch.Tensor.add_, d_words), d_weights


def _in_directions(parts: Iterable[torch.Tensor], batch: PackedBatch) -> list[torch.Tensor]:
    """
    The forward direction's words unchanged and the backward direction's words mirrored, from one or two tensors of
    shape `(n_words, dim)`. A second call restores the order.
    """
    forward, *backward = parts
    return [forward, *(part.index_select(0, batch.mirrored) for part in backward)]


def _previous(outputs: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
    """Each direction's values at the previous word, zero at first words: shape `(n_directions, n_words, dim)`."""
    first = outputs.new_zeros(len(outputs), batch.n_sentences, outputs.size(-1))
    return torch.cat([first, outputs.index_select(1, batch.before[batch.n_sentences :])], 1)


def _first_rows(tensor: torch.Tensor, n_rows: int) -> torch.Tensor:
    """The first rows of shape `(n_directions, n, dim)`. Slicing is slow in loops, so it is skipped where possible."""
    return tensor if tensor.size(1) == n_rows else tensor[:, :n_rows]
