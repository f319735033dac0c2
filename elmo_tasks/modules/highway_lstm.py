"""
Highway LSTMs with alternating directions over packed sentences (see `PackedBatch`), with a custom gradient.

For a word `x` and the previous output `h`, after dropout (He et al. 2017, section 2.2; `s` is the logistic function):

    i, f, g, o, r = s(z_i), s(z_f), tanh(z_g), s(z_o), s(z_r)       z = W_x x + W_h h + b
    c_t = f * c_{t-1} + i * g
    h_t = r * o * tanh(c_t) + (1 - r) * (V_x x)

A logistic function costs a fraction of a hyperbolic tangent, so `tanh(x)` is computed as `2 s(2 x) - 1` with doubled
weights for `g`, and one logistic function computes all five gates.
"""

from typing import Any

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.nn.util import get_dropout_mask
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.packing import PackedBatch, pack, rows_of_steps

__all__ = ["AlternatingHighwayLstm", "HighwayRecurrence"]


@Seq2SeqEncoder.register("elmo_alternating_highway_lstm")
class AlternatingHighwayLstm(Seq2SeqEncoder):
    """
    The encoder of He et al. (2017) for semantic roles (section A.5 of the paper): stacked LSTMs with highway
    connections. The first runs forward over a sentence, the second backward, and so on. Weight matrices are initialised
    to be orthonormal, gate by gate, and forget gates have an initial bias of 1. The result is the same as in AllenNLP's
    `alternating_lstm`, but padding is not computed.

    # Parameters

    recurrent_dropout_probability : `float`
        Applied to an LSTM's output on its way to the next word, with the same units at all words of a sentence.
    use_input_projection_bias : `bool`
        Whether the projection of the input has a bias, in addition to the bias of the gates.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        recurrent_dropout_probability: float = 0.0,
        use_input_projection_bias: bool = False,
    ) -> None:
        super().__init__()
        self._dims = input_size, hidden_size
        self.layers = torch.nn.ModuleList(
            _HighwayLstm(
                hidden_size if number else input_size,
                hidden_size,
                runs_backward=number % 2 == 1,
                dropout=recurrent_dropout_probability,
                input_bias=use_input_projection_bias,
            )
            for number in range(num_layers)
        )

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, input_size)`, with words before padding, to
        `(batch_size, timesteps, hidden_size)`, zero where there is no word.
        """
        batch = pack(mask.sum(-1).cpu().numpy()).to(mask.device)
        positions = batch.positions(mask.size(1))
        # Shape: (n_words, input_size)
        packed = inputs.flatten(0, 1).index_select(0, positions)
        for layer in self.layers:
            packed = layer(packed, batch)
        # Shape: (batch_size * timesteps, hidden_size)
        outputs = packed.new_zeros(mask.numel(), packed.size(-1)).index_copy(0, positions, packed)
        return outputs.view(*mask.shape, packed.size(-1))

    def get_input_dim(self) -> int:
        return self._dims[0]

    def get_output_dim(self) -> int:
        return self._dims[1]

    def is_bidirectional(self) -> bool:
        return False


class _HighwayLstm(torch.nn.Module):
    """
    One layer. The rows of its weights are in the order of AllenNLP's cell: i, f, g, o, r, followed in `input_weight` by
    the input that the highway carries.
    """

    def __init__(self, input_dim: int, dim: int, *, runs_backward: bool, dropout: float, input_bias: bool) -> None:
        super().__init__()
        self._runs_backward = runs_backward
        self._dropout = dropout
        self.input_weight = torch.nn.Parameter(_orthonormal_blocks(6, dim, input_dim))
        self.state_weight = torch.nn.Parameter(_orthonormal_blocks(5, dim, dim))
        self.state_bias = torch.nn.Parameter(torch.zeros(5 * dim))
        self.state_bias.data[dim : 2 * dim] = 1.0
        self.input_bias = torch.nn.Parameter(torch.zeros(6 * dim)) if input_bias else None

    def forward(self, packed: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
        """From shape `(n_words, input_dim)` to `(n_words, dim)`."""
        dim = self.state_weight.size(1)
        # The state's bias is not added to the input that the highway carries. Shape: (6 * dim,)
        bias = torch.nn.functional.pad(self.state_bias, (0, dim))
        if self.input_bias is not None:
            bias = bias + self.input_bias
        # Shape: (n_words, 5 * dim) and (n_words, dim)
        products, carried = torch.nn.functional.linear(packed, self.input_weight, bias).split([5 * dim, dim], -1)
        dropout_mask = None
        if self.training and self._dropout > 0.0:
            # Shape: (n_sentences, dim)
            dropout_mask = get_dropout_mask(self._dropout, packed.new_empty(batch.n_sentences, dim))
        return HighwayRecurrence.apply(products, carried, self.state_weight, dropout_mask, batch, self._runs_backward)


def _orthonormal_blocks(n_blocks: int, n_rows: int, n_columns: int) -> torch.Tensor:
    """Shape `(n_blocks * n_rows, n_columns)`."""
    blocks = (torch.nn.init.orthogonal_(torch.empty(n_rows, n_columns)) for _ in range(n_blocks))
    return torch.cat(list(blocks))


class HighwayRecurrence(torch.autograd.Function):
    """
    A layer over a packed batch. In the backward pass, only the recurrent part is computed step by step; the gradient of
    the weights is one product over all words.

    From the `products` of the input, including the bias, of shape `(n_words, 5 * dim)`; the input that the highway
    carries, of shape `(n_words, dim)`; the weights of the previous output, of shape `(5 * dim, dim)`; and its dropout
    mask, of shape `(n_sentences, dim)`, or `None`, to the outputs, of shape `(n_words, dim)`.
    """

    @staticmethod
    def forward(ctx, products, carried, weight, dropout_mask, batch, runs_backward):
        recurrent_side = _with_doubled_candidate(weight).t()
        gates = _with_doubled_candidate(products, -1)
        outputs, memories = torch.empty_like(carried), torch.empty_like(carried)
        # One row per sentence, zero until its first word. Shape: (n_sentences, dim)
        memory, state = carried.new_zeros(2, batch.n_sentences, carried.size(-1))
        steps = list(rows_of_steps(batch.batch_sizes))
        for rows, n_now in steps[::-1] if runs_backward else steps:
            # Shape: (n_now, 5 * dim)
            gates_now = gates[rows].addmm_(state[:n_now], recurrent_side).sigmoid_()
            # Shape: (n_now, dim), each
            input_gate, forget_gate, candidate, output_gate, highway_gate = gates_now.chunk(5, -1)
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
        by_gate = d_products.unflatten(-1, (5, -1))
        forget_gates = gates.chunk(5, -1)[1]

        d_outputs = d_outputs.clone()
        # The gradients of the state that a step passes to the next. Shape: (n_sentences, dim)
        d_memory, d_state = d_outputs.new_zeros(2, batch.n_sentences, d_outputs.size(-1))
        steps = list(rows_of_steps(batch.batch_sizes))
        for rows, n_now in steps if ctx.runs_backward else steps[::-1]:
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
        d_carried = d_outputs * (1.0 - gates.chunk(5, -1)[4])
        return d_products, d_carried, d_products.t() @ read, None, None, None


def _slopes(
    gates: torch.Tensor, memories: torch.Tensor, carried: torch.Tensor, previous: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The derivatives of the cell at each word: of the memory with respect to the products for i, f and g, and of the
    output with respect to the products for o and r, of shape `(n_words, 5 * dim)`; and of the output with respect to
    the memory, of shape `(n_words, dim)`.
    """
    # Shape: (n_words, dim), each
    input_gate, _, halved, output_gate, highway_gate = gates.chunk(5, -1)
    candidate = 2.0 * halved - 1.0
    squashed = torch.tanh(memories)
    # The slope of the logistic function, which is right for all but the candidate (a hyperbolic tangent).
    slopes = gates * (1.0 - gates)
    of_input, of_forget, of_candidate, of_output, of_highway = slopes.chunk(5, -1)
    of_input.mul_(candidate)
    of_forget.mul_(_with_zero_row(memories)[previous])
    of_candidate.mul_(input_gate).mul_(4.0)
    of_output.mul_(squashed).mul_(highway_gate)
    of_highway.mul_(output_gate * squashed - carried)
    return slopes, highway_gate * output_gate * (1.0 - squashed.square())


def _with_doubled_candidate(tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """A copy with the part for `g` doubled in a dimension that has i, f, g, o, r."""
    doubled = tensor.clone()
    doubled.chunk(5, dim)[2].mul_(2.0)
    return doubled


def _with_zero_row(tensor: torch.Tensor) -> torch.Tensor:
    return torch.cat([tensor, tensor.new_zeros(1, tensor.size(-1))])
