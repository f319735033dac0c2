"""
A layer of LSTMs over packed sentences, and its gradient.

With the products `z` of a word and of the previous output (`s` is the logistic function, gates are in the order of
torch):

    i, f, g', o = s(z_i), s(z_f), s(2 z_g) - 1/2, s(z_o)        z = W x + U h + b
    m_t  = f * m_{t-1} + 4 i g'
    q_t  = s(m_t) - 1/2
    h_t  = 2 o q_t

This is `torch.nn.LSTM`, whose memory is `m / 2`, since `tanh(x) = 2 s(2 x) - 1`: a logistic function costs a fraction
of a hyperbolic tangent on some processors, and one call serves all four gates. The loop over the words calls only what
depends on the previous word, with all directions in each call: for the batches of tasks, a call costs as much as what
it computes.
"""

from typing import Any

import torch

from elmo_tasks.modules.recurrent.directions import (
    GradientsWithoutGraph,
    directions_of,
    first_rows,
    gradient_of_words,
    gradients_of_parameters,
    inputs_of,
    parameters_by_kind,
    previous_of,
    words_of,
    write_products,
)
from elmo_tasks.modules.recurrent.packed_batch import PackedBatch

__all__ = ["LstmRecurrence"]


class LstmRecurrence(torch.autograd.Function):
    """
    One layer, from the zero state. In the backward pass only the recurrent part is computed step by step; the gradient
    of each weight is one product over all words.

    `LstmRecurrence.apply(words, batch, n_directions, dtype, *parameters)` takes `words`, of shape
    `(n_words, input_dim)`, packed; the `PackedBatch`; the number of directions; the type of the products over all
    words, which need not be that of all else; and for each direction its `weight_ih`, `weight_hh` and, where
    there are any, `bias_ih` and `bias_hh` as `torch.nn.LSTM` has them. It returns the outputs, of shape
    `(n_words, n_directions * dim)`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        words: torch.Tensor,
        batch: PackedBatch,
        n_directions: int,
        dtype: torch.dtype,
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        input_weights, state_weights, *biases = parameters_by_kind(parameters, n_directions)
        dim, n_words, sizes = state_weights[0].size(1), len(words), batch.batch_sizes
        # Shape: (n_directions, n_words, 4 * dim)
        gates = words.new_empty(n_directions, n_words, 4 * dim)
        for number, inputs in enumerate(inputs_of(words.to(dtype), n_directions, batch)):
            bias = biases[0][number] + biases[1][number] if biases else None
            write_products(inputs, input_weights[number], bias, gates[number])
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
        ctx.batch, ctx.dtype = batch, dtype
        return words_of(outputs, batch)

    @staticmethod
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # The forward pass is not under autocast either.
        with torch.no_grad(), torch.autocast(d_words.device.type, enabled=False):
            gradients = LstmRecurrence._backward(ctx, d_words)
        words, _, _, _, _, *parameters = ctx.saved_tensors
        d_inputs, *d_parameters = GradientsWithoutGraph.apply(gradients, d_words, words, *parameters)
        return d_inputs, None, None, None, *d_parameters

    @staticmethod
    def _backward(ctx: Any, d_words: torch.Tensor) -> list[torch.Tensor | None]:
        words, gates, memories, squashed, outputs, *parameters = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        n_directions, _, dim = outputs.shape
        input_weights, state_weights, *_ = parameters_by_kind(parameters, n_directions)
        sizes, state_weight = batch.batch_sizes, torch.stack(list(state_weights))
        # Shape: (n_directions, n_words, 4 * dim) and (n_directions, n_words, dim)
        d_products, to_memory = _slopes(gates, memories, squashed, batch)
        # Shape: (n_directions, n_words, 4, dim)
        by_gate = d_products.unflatten(-1, (4, dim))
        forget_gates = gates.chunk(4, -1)[1]

        d_outputs = directions_of(d_words, n_directions, batch).split(sizes, 1)
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
        inputs, d_products = inputs_of(words.to(ctx.dtype), n_directions, batch), d_products.to(ctx.dtype)
        return [
            gradient_of_words(d_products, input_weights, batch) if ctx.needs_input_grad[0] else None,
            *gradients_of_parameters(
                [(part.t() @ each).to(words.dtype) for part, each in zip(d_products, inputs, strict=True)],
                (d_products.transpose(1, 2) @ previous_of(outputs.to(ctx.dtype), batch)).to(words.dtype),
                d_bias,
                d_bias.clone(),
                n_directions=n_directions,
                n_parameters=len(parameters),
            ),
        ]


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
