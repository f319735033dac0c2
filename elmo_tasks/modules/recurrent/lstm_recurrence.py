"""
A layer of LSTMs over packed sentences, and its gradient.

With the products `z` of a word and of the previous output (`s` is the logistic function, gates are in the order of
torch):

    i, f, g', o = s(z_i), s(z_f), s(2 z_g) - 1/2, s(z_o)        z = W x + U h + b
    m_t  = f * m_{t-1} + 4 i g'
    q_t  = s(m_t) - 1/2
    h_t  = 2 o q_t

This is `torch.nn.LSTM` with the memory `m / 2`, since `tanh(x) = 2 s(2 x) - 1`: a logistic function costs a fraction
of a hyperbolic tangent on some processors, and one call serves all four gates. The loop over the words calls only what
depends on the previous word, with all directions in each call: for the batches of tasks, a call costs as much as what
it computes.
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

__all__ = ["LstmRecurrence"]


class LstmRecurrence(torch.autograd.Function):
    """
    One layer, from the zero state. In the backward pass only the recurrent part is computed step by step; the gradient
    of each weight is one product over all words.

    `LstmRecurrence.apply(words, batch, n_directions, *parameters)` takes `words`, of shape `(n_words, input_dim)`,
    packed; and for each direction `weight_ih`, `weight_hh` and, where there are any, `bias_ih` and `bias_hh` as
    `torch.nn.LSTM` has them. It returns the outputs, of shape `(n_words, n_directions * dim)`. The backward direction
    reads mirrored sentences, so that at each step both directions have the same number of sentences.
    """

    @staticmethod
    def forward(
        ctx: Any, words: torch.Tensor, batch: PackedBatch, n_directions: int, *parameters: torch.Tensor
    ) -> torch.Tensor:
        n_kinds = len(parameters) // n_directions
        input_weights, state_weights, *biases = (parameters[kind::n_kinds] for kind in range(n_kinds))
        dim, n_words, sizes = state_weights[0].size(1), len(words), batch.batch_sizes
        # Shape: (n_directions, n_words, 4 * dim)
        gates = words.new_empty(n_directions, n_words, 4 * dim)
        for number, inputs in enumerate(inputs_of(words, n_directions, batch)):
            bias = biases[0][number] + biases[1][number] if biases else words.new_zeros(4 * dim)
            torch.addmm(bias, inputs, input_weights[number].t(), out=gates[number])
        input_gates, forget_gates, candidates, output_gates = gates.chunk(4, -1)
        candidates.mul_(2.0)
        # For outputs that are still halved. Shape: (n_directions, dim, 4 * dim)
        recurrent_side = torch.stack([weight.t() for weight in state_weights]).mul_(2.0)
        recurrent_side.chunk(4, -1)[2].mul_(2.0)

        # Shape: (n_directions, n_words, dim), each
        memories, squashed, outputs = words.new_empty(3, n_directions, n_words, dim)
        memory, state = words.new_zeros(2, n_directions, batch.n_sentences, dim)
        each = (gates, input_gates, forget_gates, candidates, output_gates, memories, squashed, outputs)
        for now, i, f, g, o, m, q, h in zip(*(tensor.split(sizes, 1) for tensor in each), strict=True):
            memory, state = first_rows(memory, now.size(1)), first_rows(state, now.size(1))
            torch.baddbmm(now, state, recurrent_side, out=now).sigmoid_()
            g.sub_(0.5)
            memory = torch.mul(memory, f, out=m).addcmul_(i, g, value=4.0)
            torch.sigmoid(memory, out=q).sub_(0.5)
            state = torch.mul(o, q, out=h)
        outputs.mul_(2.0)
        ctx.save_for_backward(words, gates, memories, squashed, outputs, *parameters)
        ctx.batch = batch
        return words_of(outputs, batch)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        words, gates, memories, squashed, outputs, *parameters = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        n_directions, _, dim = outputs.shape
        n_kinds = len(parameters) // n_directions
        input_weights, state_weights = (parameters[kind::n_kinds] for kind in range(2))
        sizes, state_weight = batch.batch_sizes, torch.stack(state_weights)
        # Shape: (n_directions, n_words, 4 * dim) and (n_directions, n_words, dim)
        d_products, to_memory = _slopes(gates, memories, squashed, batch)
        # Shape: (n_directions, n_words, 4, dim)
        by_gate = d_products.unflatten(-1, (4, dim))
        forget_gates = gates.chunk(4, -1)[1]

        d_outputs = directions_of(d_words, dim, batch).split(sizes, 1)
        # The gradient of the memory, with a row for each sentence, zero until its last word comes.
        d_memory = d_words.new_zeros(n_directions, batch.n_sentences, dim)
        each = (d_products, by_gate[..., :3, :], by_gate[..., 3, :], forget_gates, to_memory)
        steps = list(zip(*(tensor.split(sizes, 1) for tensor in each), strict=True))
        for step in reversed(range(len(steps))):
            products, by_memory, by_output, forget_gate, slope = steps[step]
            d_output = d_outputs[step]
            d_memory_now = first_rows(d_memory, sizes[step]).addcmul_(d_output, slope)
            by_memory.mul_(d_memory_now.unsqueeze(2))
            by_output.mul_(d_output)
            if step:
                d_memory_now.mul_(forget_gate)
                # The gradient of the output at the word before.
                d_previous = first_rows(d_outputs[step - 1], sizes[step])
                torch.baddbmm(d_previous, products, state_weight, out=d_previous)

        d_bias = d_products.sum(1)
        inputs = inputs_of(words, n_directions, batch)
        d_input_weights = [part.t() @ each for part, each in zip(d_products, inputs, strict=True)]
        d_state_weight = d_products.transpose(1, 2) @ previous_of(outputs, batch)
        # A copy: gradients are clipped in place.
        by_kind = (d_input_weights, d_state_weight, d_bias, d_bias.clone())[:n_kinds]
        d_inputs = gradient_of_words(d_products, input_weights, batch) if ctx.needs_input_grad[0] else None
        return d_inputs, None, None, *(gradient for direction in zip(*by_kind, strict=True) for gradient in direction)


def _slopes(
    gates: torch.Tensor, memories: torch.Tensor, squashed: torch.Tensor, batch: PackedBatch
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The derivatives of the cell at each word: of torch's memory by the products for i, f and g, and of the output by
    those for o, of shape `(n_directions, n_words, 4 * dim)`; and of the output by torch's memory, of shape
    `(n_directions, n_words, dim)`.
    """
    # Shape: (n_directions, n_words, dim), each
    input_gates, _, candidates, output_gates = gates.chunk(4, -1)
    # The slope of the logistic function: right for all but the candidates, from which a half was subtracted.
    slopes = torch.addcmul(gates, gates, gates, value=-1.0)
    of_input, of_forget, of_candidate, of_output = slopes.chunk(4, -1)
    of_input.mul_(candidates).mul_(2.0)
    of_forget.mul_(previous_of(memories, batch)).mul_(0.5)
    torch.mul(candidates, candidates, out=of_candidate).sub_(0.25).mul_(input_gates).mul_(-4.0)
    of_output.mul_(squashed).mul_(2.0)
    return slopes, squashed.square().sub_(0.25).mul_(output_gates).mul_(-4.0)
