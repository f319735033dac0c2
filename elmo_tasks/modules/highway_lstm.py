"""The highway LSTMs of semantic roles, with alternating directions, over packed sentences."""

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.nn.util import get_dropout_mask
from torch.nn.functional import pad

from elmo_tasks.bilm.packing import PackedBatch, pack
from elmo_tasks.modules.recurrent.cells import HighwayCell
from elmo_tasks.modules.recurrent.recurrence import run_layer

__all__ = ["AlternatingHighwayLstm"]


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
            _HighwayLstm(size, hidden_size, recurrent_dropout_probability, use_input_projection_bias)
            for size in [input_size, *[hidden_size] * (num_layers - 1)]
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
            # The next one reads mirrored sentences.
            packed = layer(packed, batch).index_select(0, batch.mirrored)
        if len(self.layers) % 2:
            positions = positions[batch.mirrored]
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
        parameters = self.input_weight.unsqueeze(0), self.state_weight.unsqueeze(0), bias.unsqueeze(0)
        dropout_mask = None
        if self.training and self._dropout > 0.0:
            dropout_mask = get_dropout_mask(self._dropout, packed.new_empty(1, batch.n_sentences, dim))
        return run_layer(HighwayCell, packed, batch, *parameters, dropout_mask)


def _orthonormal_blocks(n_blocks: int, n_rows: int, n_columns: int) -> torch.Tensor:
    """Shape `(n_blocks * n_rows, n_columns)`."""
    blocks = (torch.nn.init.orthogonal_(torch.empty(n_rows, n_columns)) for _ in range(n_blocks))
    return torch.cat(list(blocks))
