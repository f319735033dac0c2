"""
LSTMs, GRUs and the highway LSTMs of semantic roles over packed sentences, which train faster on a
CPU.

The cells have the form of `LstmCell`, which explains the factors of 2.
"""

from typing import Any, Generic, NamedTuple, TypeVar

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import (
    GruSeq2SeqEncoder,
    LstmSeq2SeqEncoder,
    PytorchSeq2SeqWrapper,
)
from allennlp.nn.util import get_dropout_mask
from torch.nn.functional import pad

from elmo_tasks.bilm.lstm.cell import Cell, LstmCell, LstmDerivatives, LstmValues
from elmo_tasks.bilm.packing import PackedBatch
from elmo_tasks.modules.recurrent.recurrent_layer import run_layer, run_packed

__all__ = ["AlternatingHighwayLstm", "GruCell", "GruEncoder", "HighwayCell", "LstmEncoder"]


T = TypeVar("T")


class HighwayGates(NamedTuple, Generic[T]):
    """`LstmGates`, the highway's gate, and half of its input."""

    i: T
    f: T
    g: T
    o: T
    r: T
    x: T


class HighwayCell(LstmCell):
    """
    An LSTM with half of a highway's input `x` as the last product:
    `h_t = r * o * q_t + (1 - r) * x`.
    """

    gates = HighwayGates
    scales = HighwayGates(i=1.0, f=1.0, g=2.0, o=1.0, r=1.0, x=0.5)
    logistic = slice(0, 5)

    def forward(self, before: torch.Tensor, gates: Any, values: LstmValues) -> None:
        super().forward(before, gates, values)
        torch.lerp(gates.x, values.output, gates.r, out=values.output)

    def derivatives(
        self,
        gates: torch.Tensor,
        values: LstmValues,
        before: torch.Tensor,
        partials: torch.Tensor,
    ) -> LstmDerivatives:
        derivatives = super().derivatives(gates, values, before, partials)
        gate = self.blocks(gates)
        partial = self.blocks(partials)
        partial.o.mul_(gate.r)
        partial.r.mul_(torch.addcmul(-gate.x, gate.o, values.squashed))
        torch.sub(1.0, gate.r, out=partial.x)
        derivatives.output_by_memory.mul_(gate.r)
        return derivatives


class GruGates(NamedTuple, Generic[T]):
    """The blocks of the products of a GRU; `y` is the only one without the words."""

    y: T
    r: T
    u: T
    n: T


class GruValues(NamedTuple):
    """The output, which is also the memory."""

    output: torch.Tensor


class GruDerivatives(NamedTuple):
    """At each word, the derivative of the output with respect to the previous output."""

    output_by_previous: torch.Tensor


class GruCell(Cell):
    """
    `torch.nn.GRU`, with an output that is also the memory, and with the products `y` of the
    previous output:

        r, u = s(z_r), s(z_u)
        n    = s(z_n + r * y)
        h_t  = (1 - u) * n + u * h_{t-1}

    Because this interpolates, no half is subtracted: it is in `h_0` and all outputs.
    """

    gates = GruGates
    values = GruValues
    scales = GruGates(y=2.0, r=1.0, u=1.0, n=2.0)
    logistic = slice(1, 3)
    start = 0.5

    def forward(self, before: torch.Tensor, gates: Any, values: GruValues) -> None:
        torch.lerp(
            gates.n.addcmul_(gates.r, gates.y).sigmoid_(), before, gates.u, out=values.output
        )

    def derivatives(
        self,
        gates: torch.Tensor,
        values: GruValues,
        before: torch.Tensor,
        partials: torch.Tensor,
    ) -> GruDerivatives:
        y, r, u, n = self.blocks(gates)
        partial = self.blocks(partials)
        torch.addcmul(n, n, n, value=-1.0, out=partial.n).addcmul_(partial.n, u, value=-1.0)
        torch.mul(partial.n, r, out=partial.y)
        torch.addcmul(partial.n, partial.n, r, value=-1.0, out=partial.r).mul_(y).mul_(r)
        torch.addcmul(u, u, u, value=-1.0, out=partial.u).mul_(before - n)
        return GruDerivatives(u)

    def backward(
        self,
        d_output: torch.Tensor,
        d_previous: torch.Tensor | None,
        d_memory: torch.Tensor,
        partials: torch.Tensor,
        derivatives: GruDerivatives,
    ) -> None:
        partials.mul_(d_output.unsqueeze(-2))
        if d_previous is not None:
            d_previous.addcmul_(d_output, derivatives.output_by_previous)


class _RecurrentEncoder(PytorchSeq2SeqWrapper):
    """AllenNLP's encoder, trained with our own recurrence on a CPU."""

    def forward(
        self, inputs: torch.Tensor, mask: torch.Tensor, hidden_state: Any = None
    ) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, input_size)`, with words before padding, to
        `(batch_size, timesteps, n_directions * hidden_size)`, zero where there is no word.
        """
        if hidden_state is not None or self._is_left_to_torch(inputs, mask):
            return super().forward(inputs, mask, hidden_state)
        return run_packed(inputs, mask, self._run_layers)

    def _run_layers(self, words: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
        """From shape `(n_words, input_size)` to `(n_words, n_directions * hidden_size)`."""
        weights = self._module.all_weights
        for start in range(0, len(weights), self._num_directions):
            if start > 0:
                words = torch.nn.functional.dropout(words, self._module.dropout, self.training)
            directions = weights[start : start + self._num_directions]
            # For both directions. Shape: (n_directions, n_gates * hidden_size, ...) each
            parameters = [torch.stack(tensors) for tensors in zip(*directions, strict=True)]
            words = self._run_layer(words, batch, *parameters)
        return words

    def _is_left_to_torch(self, inputs: torch.Tensor, mask: torch.Tensor) -> bool:
        """
        Whether torch computes the batch: it is as fast without gradients or on a GPU, and supports
        rare options.
        """
        is_rare = self.stateful or not self._module.bias
        return is_rare or inputs.device.type != "cpu" or not torch.is_grad_enabled()


@Seq2SeqEncoder.register("elmo_lstm")
class LstmEncoder(_RecurrentEncoder, LstmSeq2SeqEncoder):
    """
    AllenNLP's `lstm`, with the same parameters under the same names, so each loads the checkpoints
    of the other. It trains faster on a CPU, without padding. Its gradient cannot be differentiated
    again.
    """

    @staticmethod
    def _run_layer(
        words: torch.Tensor,
        batch: PackedBatch,
        weight: torch.Tensor,
        state_weight: torch.Tensor,
        input_bias: torch.Tensor,
        state_bias: torch.Tensor,
    ) -> torch.Tensor:
        # The product gives the second bias a gradient of its own: gradients are clipped and added
        # up in place.
        bias = input_bias + 1.0 * state_bias
        return run_layer(LstmCell(), words, batch, weight, state_weight, bias)

    def _is_left_to_torch(self, inputs: torch.Tensor, mask: torch.Tensor) -> bool:
        # For sentences of equal length, torch makes one call to oneDNN per direction.
        lengths = mask.sum(1)
        is_fused = inputs.dtype == torch.float32 and bool((lengths == lengths[0]).all())
        return is_fused or super()._is_left_to_torch(inputs, mask)


@Seq2SeqEncoder.register("elmo_gru")
class GruEncoder(_RecurrentEncoder, GruSeq2SeqEncoder):
    """
    AllenNLP's `gru`, trained like `LstmEncoder`, but sentences of equal length also use our
    recurrence.
    """

    @staticmethod
    def _run_layer(
        words: torch.Tensor,
        batch: PackedBatch,
        weight: torch.Tensor,
        state_weight: torch.Tensor,
        input_bias: torch.Tensor,
        state_bias: torch.Tensor,
    ) -> torch.Tensor:
        # From torch's order r, u, n to the cell's: y, r, u, n.
        dim = state_weight.size(-1)
        # The cell's outputs, doubled, are one more than torch's.
        state_bias = state_bias - state_weight.sum(-1)
        bias = pad(input_bias, (dim, 0)) + pad(state_bias.roll(dim, 1), (0, dim))
        return run_layer(GruCell(), words, batch, weight, state_weight.roll(dim, 1), bias)


@Seq2SeqEncoder.register("elmo_alternating_highway_lstm")
class AlternatingHighwayLstm(Seq2SeqEncoder):
    """
    The encoder of He et al. (2017) for semantic roles (section A.5 of the paper): stacked LSTMs
    with highway connections. The first runs forward over a sentence, the second backward, and so
    on. Weight matrices are initialised to be orthonormal, gate by gate, and forget gates have an
    initial bias of 1. The result is the same as in AllenNLP's `alternating_lstm`, but padding is
    not computed.

    # Parameters

    recurrent_dropout_probability : `float`
        Applied to an LSTM's output on its way to the next word, with the same units at all words of
        a sentence.
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
        self._input_size = input_size
        self._hidden_size = hidden_size
        self.layers = torch.nn.ModuleList(
            _HighwayLstm(
                size, hidden_size, recurrent_dropout_probability, use_input_projection_bias
            )
            for size in [input_size, *[hidden_size] * (num_layers - 1)]
        )

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, input_size)`, with words before padding, to
        `(batch_size, timesteps, hidden_size)`, zero where there is no word.
        """
        return run_packed(inputs, mask, self._run_layers)

    def _run_layers(self, words: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
        for layer in self.layers:
            # The next one reads mirrored sentences.
            words = layer(words, batch).index_select(0, batch.mirrored)
        return words.index_select(0, batch.mirrored) if len(self.layers) % 2 else words

    def get_input_dim(self) -> int:
        return self._input_size

    def get_output_dim(self) -> int:
        return self._hidden_size

    def is_bidirectional(self) -> bool:
        return False


class _HighwayLstm(torch.nn.Module):
    """
    One layer. The rows of its weights are in the order of AllenNLP's cell: i, f, g, o, r, followed
    in `input_weight` by the input that the highway carries.
    """

    def __init__(self, input_dim: int, dim: int, dropout: float, input_bias: bool) -> None:
        super().__init__()
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
        bias = pad(self.state_bias, (0, dim))
        if self.input_bias is not None:
            bias = bias + self.input_bias
        dropout_mask = None
        if self.training and self._dropout > 0.0:
            dropout_mask = get_dropout_mask(
                self._dropout, packed.new_empty(1, batch.n_sentences, dim)
            )
        # One direction.
        return run_layer(
            HighwayCell(),
            packed,
            batch,
            self.input_weight.unsqueeze(0),
            self.state_weight.unsqueeze(0),
            bias.unsqueeze(0),
            dropout_mask,
        )


def _orthonormal_blocks(n_blocks: int, n_rows: int, n_columns: int) -> torch.Tensor:
    """Shape `(n_blocks * n_rows, n_columns)`."""
    blocks = [torch.nn.init.orthogonal_(torch.empty(n_rows, n_columns)) for _ in range(n_blocks)]
    return torch.cat(blocks)
