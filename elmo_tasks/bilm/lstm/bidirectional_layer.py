"""A layer of the biLM: its two LSTMs with projected outputs, run in one loop over words."""

from collections.abc import Sequence

import torch

from elmo_tasks.bilm.lstm.inference import FrozenLayer
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm, scaled_parameters
from elmo_tasks.bilm.lstm.recurrence import Clips
from elmo_tasks.bilm.lstm.training import ProjectedLstmFunction
from elmo_tasks.bilm.packed_linear import type_of_results

__all__ = ["BidirectionalLayer"]


class BidirectionalLayer:
    """
    The LSTMs of both directions, or any LSTMs of the same shape, each over its own inputs, run in
    one loop over the words: with gradients where needed, and otherwise with weights that are packed
    once. This is not a module: the parameters are registered elsewhere.

    Unlike `modules/recurrent/recurrent_layer.py`, the loop computes all of a step: the weights are
    packed in any precision, and a step of the biLM's size fills the cache, so its gradient would be
    slower for all words in one pass.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm]) -> None:
        self.lstms = tuple(lstms)
        self._clips = Clips(self.lstms[0].cell_clip, self.lstms[0].projection_clip)
        self._frozen_layer = FrozenLayer(self.lstms, self._clips)

    def __call__(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], *, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """
        From inputs of shape `(n_lstms, n_words, projection_dim)`, for each LSTM in the order of a
        `PackedBatch`, to outputs of the same shape. `batch_sizes` is the number of sentences that
        have a word at each step. `dtype` is the type of the products, by default the parameters'.
        With `torch.int8`, inputs and outputs are float32.
        """
        dtype = dtype or self.lstms[0].kernel.dtype
        inputs = inputs.to(type_of_results(dtype))
        is_trained = any(
            parameter.requires_grad for lstm in self.lstms for parameter in lstm.parameters()
        )
        # Triton uses the current device. No effect on a CPU.
        with torch.cuda.device_of(inputs):  # type: ignore[no-untyped-call]
            if not torch.is_grad_enabled() or not (inputs.requires_grad or is_trained):
                return self._frozen_layer(inputs, batch_sizes, dtype)
            if is_trained:
                self._frozen_layer.forget()
            kernel, bias, projection = scaled_parameters(self.lstms)
            return ProjectedLstmFunction.apply(  # type: ignore[no-any-return, no-untyped-call]
                inputs, kernel, bias, projection, batch_sizes, self._clips
            )
