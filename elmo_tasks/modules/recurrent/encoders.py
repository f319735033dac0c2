"""LSTMs and GRUs with torch's parameters, which train faster on a CPU."""

from typing import Any

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import GruSeq2SeqEncoder, LstmSeq2SeqEncoder, PytorchSeq2SeqWrapper
from torch.nn.functional import pad

from elmo_tasks.bilm.packing import PackedBatch, pack
from elmo_tasks.modules.recurrent.cells import GruCell, LstmCell
from elmo_tasks.modules.recurrent.recurrence import run_layer

__all__ = ["GruEncoder", "LstmEncoder"]


class _RecurrentEncoder(PytorchSeq2SeqWrapper):
    """AllenNLP's encoder, trained with our own recurrence on a CPU."""

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor, hidden_state: Any = None) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, input_size)`, with words before padding, to
        `(batch_size, timesteps, n_directions * hidden_size)`, zero where there is no word.
        """
        if hidden_state is not None or self._is_left_to_torch(inputs, mask):
            return super().forward(inputs, mask, hidden_state)
        batch = pack(mask.sum(-1).numpy())
        positions = batch.positions(mask.size(1))
        # Shape: (n_words, input_size)
        words = inputs.flatten(0, 1).index_select(0, positions)
        weights, n_directions = self._module.all_weights, self._num_directions
        for first in range(0, len(weights), n_directions):
            if first:
                words = torch.nn.functional.dropout(words, self._module.dropout, self.training)
            # Shape: (n_directions, n_gates * hidden_size, ...), each
            parameters = (torch.stack(each) for each in zip(*weights[first : first + n_directions], strict=True))
            # Shape: (n_words, n_directions * hidden_size)
            words = self._run_layer(words, batch, *parameters)
        # Shape: (batch_size * timesteps, n_directions * hidden_size)
        outputs = words.new_zeros(mask.numel(), words.size(-1)).index_copy(0, positions, words)
        return outputs.view(*mask.shape, words.size(-1))

    def _is_left_to_torch(self, inputs: torch.Tensor, mask: torch.Tensor) -> bool:
        """Whether torch computes the batch: it is as fast without gradients or on a GPU, and supports rare options."""
        is_rare = self.stateful or not self._module.bias
        return is_rare or inputs.device.type != "cpu" or not torch.is_grad_enabled()


@Seq2SeqEncoder.register("elmo_lstm")
class LstmEncoder(_RecurrentEncoder, LstmSeq2SeqEncoder):
    """
    AllenNLP's `lstm`, with the same parameters under the same names, so each loads the checkpoints of the other. It
    trains faster on a CPU, without padding. Its gradient cannot be differentiated again.
    """

    @staticmethod
    def _run_layer(
        words: torch.Tensor, batch: PackedBatch, weight: torch.Tensor, state_weight: torch.Tensor, *biases: torch.Tensor
    ) -> torch.Tensor:
        # The product gives the second bias a gradient of its own: gradients are clipped and added up in place.
        return run_layer(LstmCell, words, batch, weight, state_weight, biases[0] + 1.0 * biases[1])

    def _is_left_to_torch(self, inputs: torch.Tensor, mask: torch.Tensor) -> bool:
        # For sentences of equal length, torch makes one call to oneDNN per direction.
        lengths = mask.sum(1)
        is_fused = inputs.dtype == torch.float32 and bool((lengths == lengths[0]).all())
        return is_fused or super()._is_left_to_torch(inputs, mask)


@Seq2SeqEncoder.register("elmo_gru")
class GruEncoder(_RecurrentEncoder, GruSeq2SeqEncoder):
    """AllenNLP's `gru`, trained like `LstmEncoder`, but sentences of equal length also use our recurrence."""

    @staticmethod
    def _run_layer(
        words: torch.Tensor, batch: PackedBatch, weight: torch.Tensor, state_weight: torch.Tensor, *biases: torch.Tensor
    ) -> torch.Tensor:
        # From torch's order r, u, n to the cell's: y, r, u, n.
        dim = state_weight.size(-1)
        # The cell's outputs, doubled, are one more than torch's.
        state_bias = biases[1] - state_weight.sum(-1)
        bias = pad(biases[0], (dim, 0)) + pad(state_bias.roll(dim, 1), (0, dim))
        return run_layer(GruCell, words, batch, weight, state_weight.roll(dim, 1), bias)
