"""Highway LSTMs that alternate in direction."""

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.nn.util import get_dropout_mask

from elmo_tasks.modules.highway_lstm.recurrence import HighwayRecurrence
from elmo_tasks.modules.recurrent.packed_batch import PackedBatch, pack

__all__ = ["AlternatingHighwayLstm"]


@Seq2SeqEncoder.register("elmo_alternating_highway_lstm")
class AlternatingHighwayLstm(Seq2SeqEncoder):
    """
    The encoder of He et al. (2017) for semantic roles (section A.5 of the paper): LSTMs with highway connections on top
    of each other, of which the first runs forward over a sentence, the second backward, and so on. Weight matrices are
    initialised orthonormal, gate by gate, and forget gates with a bias of 1. It computes what AllenNLP's
    `alternating_lstm` computes, but with the input's share of a layer in one product, without padding, and with its own
    gradients.

    # Parameters

    input_size : `int`
        Width of the input.
    hidden_size : `int`
        Units of each LSTM.
    num_layers : `int`
        The paper has 8.
    recurrent_dropout_probability : `float`
        Of an LSTM's output on its way to the next word: the same units at all words of a sentence.
    use_input_projection_bias : `bool`
        Whether the projection of the input has a bias too, in addition to the bias of the gates.
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
        widths = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = torch.nn.ModuleList(
            _HighwayLstm(
                width,
                hidden_size,
                runs_backward=number % 2 == 1,
                dropout=recurrent_dropout_probability,
                input_bias=use_input_projection_bias,
            )
            for number, width in enumerate(widths)
        )

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, input_size)`, with words before padding, to
        `(batch_size, timesteps, hidden_size)`, zero where there is no word.
        """
        batch = pack(mask)
        # Shape: (n_words, input_size)
        packed = inputs.flatten(0, 1).index_select(0, batch.positions)
        for layer in self.layers:
            packed = layer(packed, batch)
        # Shape: (batch_size * timesteps, hidden_size)
        outputs = packed.new_zeros(mask.numel(), packed.size(-1)).index_copy(0, batch.positions, packed)
        return outputs.view(*mask.shape, packed.size(-1))

    def get_input_dim(self) -> int:
        """Width of the input."""
        return self._dims[0]

    def get_output_dim(self) -> int:
        """Width of the output."""
        return self._dims[1]

    def is_bidirectional(self) -> bool:
        """No: each layer has one direction, and the output is not in two halves."""
        return False


class _HighwayLstm(torch.nn.Module):
    """
    One layer. The rows of its weights are in the order of AllenNLP's cell: i, f, g, o, r, and in `input_weight` the
    input that the highway carries.
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
        n_gates = len(self.state_bias)
        bias: torch.Tensor = self.state_bias
        carry_bias: torch.Tensor | None = None
        if self.input_bias is not None:
            bias, carry_bias = bias + self.input_bias[:n_gates], self.input_bias[n_gates:]
        of_gates, of_carried = self.input_weight.split([n_gates, len(self.input_weight) - n_gates])
        # Shape: (n_words, 5 * dim)
        products = torch.nn.functional.linear(packed, of_gates, bias)
        # Shape: (n_words, dim)
        carried = torch.nn.functional.linear(packed, of_carried, carry_bias)
        dropout_mask = None
        if self.training and self._dropout > 0.0:
            # Shape: (n_sentences, dim)
            dropout_mask = get_dropout_mask(self._dropout, packed.new_empty(batch.n_sentences, carried.size(-1)))
        return HighwayRecurrence.apply(products, carried, self.state_weight, dropout_mask, batch, self._runs_backward)


def _orthonormal_blocks(n_blocks: int, n_rows: int, n_columns: int) -> torch.Tensor:
    """Shape `(n_blocks * n_rows, n_columns)`."""
    blocks = (torch.nn.init.orthogonal_(torch.empty(n_rows, n_columns)) for _ in range(n_blocks))
    return torch.cat(list(blocks))
