"""
A layer of LSTMs over packed sentences, and its gradient.

With the products `z` of a word and of the previous output (`s` is the logistic function, gates are in the order of
torch):

    i, f, g', o = s(z_i), s(z_f), s(2 z_g) - 1/2, s(z_o)        z = W x + b + U h + c
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

from elmo_tasks.modules.recurrent.packed_batch import PackedBatch, first_rows

__all__ = ["LstmRecurrence"]


class LstmRecurrence(torch.autograd.Function):
    """
    One layer, from the zero state: from packed `words`, of shape `(n_words, input_dim)`, to shape
    `(n_words, n_directions * dim)`. The parameters are `torch.nn.LSTM`'s, one stack for all directions. The
    backward direction reads mirrored sentences, so at each step both have the same number of sentences.

    In the backward pass only the recurrent part is computed step by step; the gradient of each weight is one product
    over all words.
    """

    @staticmethod
    def forward(
        ctx: Any,
        words: torch.Tensor,
        batch: PackedBatch,
        input_weight: torch.Tensor,
        state_weight: torch.Tensor,
        input_bias: torch.Tensor,
        state_bias: torch.Tensor,
    ) -> torch.Tensor:
        n_directions, _, dim = state_weight.shape
        # Shape: (n_directions, n_words, input_dim)
        inputs = torch.stack(batch.in_directions([words] * n_directions))
        # Shape: (n_directions, n_words, 4 * dim)
        gates = torch.baddbmm((input_bias + state_bias).unsqueeze(1), inputs, input_weight.transpose(1, 2))
        input_gates, forget_gates, candidates, output_gates = gates.chunk(4, -1)
        candidates.mul_(2.0)
        # For outputs that are still halved. Shape: (n_directions, dim, 4 * dim)
        recurrent_side = 2.0 * state_weight.transpose(1, 2).contiguous()
        recurrent_side.chunk(4, -1)[2].mul_(2.0)

        # Shape: (n_directions, n_words, dim), each
        memories, squashed, outputs = words.new_empty(3, n_directions, len(words), dim)
        memory, state = words.new_zeros(2, n_directions, batch.n_sentences, dim)
        each = (gates, input_gates, forget_gates, candidates, output_gates, memories, squashed, outputs)
        for now, i, f, g, o, m, q, h in zip(*(tensor.split(batch.batch_sizes, 1) for tensor in each), strict=True):
            memory, state = first_rows(memory, now.size(1)), first_rows(state, now.size(1))
            torch.baddbmm(now, state, recurrent_side, out=now).sigmoid_()
            g.sub_(0.5)
            memory = torch.mul(memory, f, out=m).addcmul_(i, g, value=4.0)
            torch.sigmoid(memory, out=q).sub_(0.5)
            state = torch.mul(o, q, out=h)
        outputs.mul_(2.0)
        ctx.save_for_backward(inputs, gates, memories, squashed, outputs, input_weight, state_weight)
        ctx.batch = batch
        return torch.cat(batch.in_directions(outputs), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_words: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        inputs, gates, memories, squashed, outputs, input_weight, state_weight = ctx.saved_tensors
        batch: PackedBatch = ctx.batch
        n_directions, _, dim = outputs.shape
        sizes = batch.batch_sizes
        # Shape: (n_directions, n_words, 4 * dim) and (n_directions, n_words, dim)
        d_products, to_memory = _slopes(gates, memories, squashed, batch)
        # Shape: (n_directions, n_words, 4, dim)
        by_gate = d_products.unflatten(-1, (4, dim))
        forget_gates = gates.chunk(4, -1)[1]

        d_outputs = torch.stack(batch.in_directions(d_words.split(dim, -1))).split(sizes, 1)
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

        # Shape: (n_words, input_dim)
        d_inputs = None
        if ctx.needs_input_grad[0]:
            d_inputs = torch.stack(batch.in_directions(d_products @ input_weight)).sum(0)
        by_word, d_bias = d_products.transpose(1, 2), d_products.sum(1)
        # A copy: gradients are clipped in place.
        return d_inputs, None, by_word @ inputs, by_word @ batch.previous(outputs), d_bias, d_bias.clone()


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
    # The slope of the logistic function: right for all but the candidates, which have a half subtracted.
    slopes = torch.addcmul(gates, gates, gates, value=-1.0)
    of_input, of_forget, of_candidate, of_output = slopes.chunk(4, -1)
    of_input.mul_(candidates).mul_(2.0)
    of_forget.mul_(batch.previous(memories)).mul_(0.5)
    torch.mul(candidates, candidates, out=of_candidate).sub_(0.25).mul_(input_gates).mul_(-4.0)
    of_output.mul_(squashed).mul_(2.0)
    return slopes, squashed.square().sub_(0.25).mul_(output_gates).mul_(-4.0)
