"""LSTMs and GRUs with the parameters of torch's, which are trained faster on a CPU."""

from typing import ClassVar

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper

from elmo_tasks.modules.recurrent.gru_recurrence import GruRecurrence
from elmo_tasks.modules.recurrent.lstm_recurrence import LstmRecurrence
from elmo_tasks.modules.recurrent.packed_batch import pack, sentence_lengths
from elmo_tasks.modules.recurrent.products import type_of_products

__all__ = ["GruEncoder", "LstmEncoder"]

_State = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


class _RecurrentEncoder(PytorchSeq2SeqWrapper):
    """AllenNLP's encoder, whose batches are computed by a recurrence of our own where that is faster."""

    _torch_class: ClassVar[type[torch.nn.LSTM] | type[torch.nn.GRU]]
    _recurrence: ClassVar[type[torch.autograd.Function]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        stateful: bool = False,
    ) -> None:
        for name, size in {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}.items():
            if size < 1:
                raise ConfigurationError(f"{name} of {self._name()} must be at least 1, but is {size}")
        if not 0.0 <= dropout <= 1.0:
            raise ConfigurationError(f"dropout of {self._name()} must be from 0 to 1, but is {dropout}")
        module = self._torch_class(
            input_size,
            hidden_size,
            num_layers,
            bias=bias,
            batch_first=True,
            dropout=dropout,
            bidirectional=bidirectional,
        )
        super().__init__(module, stateful)

    def forward(
        self, inputs: torch.Tensor, mask: torch.Tensor | None, hidden_state: _State | None = None
    ) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(batch_size, timesteps, input_size)`.
        mask : `torch.BoolTensor`, optional
            Shape `(batch_size, timesteps)`: true at words. A sentence may be empty. `None`: all are words.
        hidden_state : `torch.Tensor` or a pair of them, optional
            The state before the first words, as torch has it, for the sentences with words only. `None`: zero.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, timesteps, n_directions * hidden_size)`, zero where there is no word. On a CPU of the
            type of the parameters, also under autocast.

        # Raises

        `ValueError`
            If the inputs have another width or type, the mask has another shape, or a sentence has words after its
            padding.
        """
        if torch.compiler.is_compiling():
            return super().forward(inputs, mask, hidden_state)
        self._check(inputs, mask)
        is_word = torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device) if mask is None else mask
        lengths = sentence_lengths(is_word)
        if not lengths.any():
            # torch packs no batch without words. The empty sum lets gradients of zero through.
            weight = self._module.weight_ih_l0
            nothing = inputs.flatten()[:0].sum() + sum(parameter.flatten()[:0].sum() for parameter in self.parameters())
            return weight.new_zeros(*is_word.shape, self.get_output_dim()) + nothing
        if inputs.device.type != "cpu":
            return super().forward(inputs, mask, hidden_state)
        dtype = type_of_products(self._module.weight_ih_l0)
        with torch.autocast("cpu", enabled=False):
            inputs = inputs.to(self._module.weight_ih_l0.dtype)
            if self._is_left_to_torch(inputs, lengths, hidden_state, dtype):
                return super().forward(inputs, mask, hidden_state)
            return self._run(inputs, is_word, dtype)

    def _is_left_to_torch(
        self, inputs: torch.Tensor, lengths: np.ndarray, hidden_state: _State | None, dtype: torch.dtype
    ) -> bool:
        """Whether torch computes a batch: where ours cannot, and where `benchmarks/encoders.py` finds it slower."""
        if self.stateful or hidden_state is not None:
            return True
        if inputs.dtype not in (torch.float32, torch.float64):
            return True
        # Without gradients, what is gained with them is lost on the calls of a step, which torch makes in C++.
        parameters = self._module.parameters()
        if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in (inputs, *parameters)):
            return True
        # torch computes an LSTM over sentences of one length by one call of oneDNN for each direction. In bfloat16 it
        # would round the states and the gradients that pass from word to word too, and be no faster.
        is_fused = dtype == torch.float32 and torch.backends.mkldnn.is_available()
        return bool(self._torch_class is torch.nn.LSTM and is_fused and (lengths == lengths[0]).all())

    def _run(self, inputs: torch.Tensor, mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        batch = pack(mask)
        n_directions = self._num_directions
        # Shape: (n_words, input_size)
        words = inputs.flatten(0, 1).index_select(0, batch.positions)
        weights = self._module.all_weights
        for layer in range(self._module.num_layers):
            if layer:
                words = torch.nn.functional.dropout(words, self._module.dropout, self.training)
            each_direction = weights[layer * n_directions : (layer + 1) * n_directions]
            parameters = (parameter for part in each_direction for parameter in part)
            # Shape: (n_words, n_directions * hidden_size)
            words = self._recurrence.apply(words, batch, n_directions, dtype, *parameters)
        # Shape: (batch_size * timesteps, n_directions * hidden_size)
        outputs = words.new_zeros(mask.numel(), words.size(-1)).index_copy(0, batch.positions, words)
        return outputs.view(*mask.shape, words.size(-1))

    def _check(self, inputs: torch.Tensor, mask: torch.Tensor | None) -> None:
        if inputs.dim() != 3 or inputs.size(-1) != self.get_input_dim():
            raise ValueError(
                f"inputs of {self._name()} must have the shape (batch_size, timesteps, {self.get_input_dim()}), "
                f"but have {tuple(inputs.shape)}"
            )
        if mask is not None and mask.shape != inputs.shape[:2]:
            raise ValueError(
                f"the mask of {self._name()} must have the shape {tuple(inputs.shape[:2])} of its inputs, but has "
                f"{tuple(mask.shape)}"
            )
        dtype = self._module.weight_ih_l0.dtype
        if inputs.dtype != dtype and not torch.is_autocast_enabled(inputs.device.type):
            raise ValueError(
                f"inputs of {self._name()} must have the type of its parameters, {dtype}, but have {inputs.dtype}"
            )

    @classmethod
    def _name(cls) -> str:
        return f"elmo_{cls._torch_class.__name__.lower()}"


@Seq2SeqEncoder.register("elmo_lstm")
class LstmEncoder(_RecurrentEncoder):
    """
    LSTMs in one direction or in both.

    Registered as a `Seq2SeqEncoder` with name "elmo_lstm". It computes what AllenNLP's `lstm` computes, with the same
    parameters under the same names, so that each loads the checkpoints of the other. On a CPU it is trained faster:
    without padding, with all directions of a layer in one loop, and with the gradient of each weight in one product.
    Where torch is as fast, torch computes the batch: without gradients, and where all sentences of a batch have one
    length; and also in half precision, with a state that is given or carried, on CUDA (by cuDNN), and where
    `torch.compile` compiles. On a CPU it has no second derivatives: to differentiate its gradient again is an error.
    While it is trained on a CPU under autocast to bfloat16, the products over all words of a batch are bfloat16.

    # Parameters

    input_size : `int`
        Width of the input.
    hidden_size : `int`
        Units of each direction.
    num_layers : `int`
        Layers on top of each other.
    bias : `bool`
        Whether the gates have biases.
    dropout : `float`
        Of the output of each layer but the last.
    bidirectional : `bool`
        Whether there is a direction from the end to the begin of each sentence too: the second half of the output.
    stateful : `bool`
        Whether a batch begins with the state in which the previous one ended.

    # Raises

    `ConfigurationError`
        If a size is not positive, or the dropout is not from 0 to 1.
    """

    _torch_class = torch.nn.LSTM
    _recurrence = LstmRecurrence


@Seq2SeqEncoder.register("elmo_gru")
class GruEncoder(_RecurrentEncoder):
    """
    GRUs in one direction or in both.

    Registered as a `Seq2SeqEncoder` with name "elmo_gru". It is to AllenNLP's `gru` what `LstmEncoder` is to
    `lstm`, and has the same parameters. Batches of one length are trained as all others are.
    """

    _torch_class = torch.nn.GRU
    _recurrence = GruRecurrence
