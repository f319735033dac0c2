"""A layer of the biLM: the LSTMs of both directions, run in one loop."""

from collections.abc import Sequence
from itertools import chain

import torch

from elmo_tasks.bilm.kernels.frozen import FrozenValue
from elmo_tasks.bilm.kernels.packed_linear import type_of_results
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm
from elmo_tasks.bilm.lstm.recurrence import LstmWeights, RecurrenceFunction, run_lstms

__all__ = ["BidirectionalLayer", "LstmState"]

LstmState = tuple[torch.Tensor, torch.Tensor]
"""Outputs and memories, of shapes `(n_lstms, n_sentences, projection_dim)` and `(n_lstms, n_sentences, cell_dim)`."""


class BidirectionalLayer:
    """
    LSTMs of the same shape, run in one loop over the words: with gradients where needed, and otherwise with weights
    that are packed once. This is not a module: the parameters are registered elsewhere.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm]) -> None:
        self.lstms = tuple(lstms)
        self._packed: FrozenValue[LstmWeights] = FrozenValue()

    def zero_state(self, n_sentences: int) -> LstmState:
        """The state before the first words. The memory, a sum over the sentence, is at least float32."""
        projection = self.lstms[0].projection
        cell_dim, projection_dim = projection.shape
        memory_dtype = torch.promote_types(projection.dtype, torch.float32)
        return (
            projection.new_zeros(len(self.lstms), n_sentences, projection_dim),
            projection.new_zeros(len(self.lstms), n_sentences, cell_dim, dtype=memory_dtype),
        )

    def __call__(
        self,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        state: LstmState,
        *,
        dtype: torch.dtype | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        From inputs of shape `(n_lstms, n_words, input_dim)`, for each LSTM in the order of a `PackedBatch`, to outputs
        of shape `(n_lstms, n_words, projection_dim)`, and the memory after the last word of each sentence. `state` is
        the one before the first words. `dtype` is the type of the products, by default the parameters'. With
        `torch.int8`, inputs and outputs are float32.
        """
        parameters = list(chain.from_iterable(lstm.parameters() for lstm in self.lstms))
        dtype = dtype or parameters[0].dtype
        inputs = inputs.to(type_of_results(dtype))
        clips = self.lstms[0].cell_clip, self.lstms[0].projection_clip
        output, memory = state[0].to(inputs.dtype), state[1]
        is_trained = any(parameter.requires_grad for parameter in parameters)
        if torch.is_grad_enabled() and (inputs.requires_grad or is_trained):
            if is_trained:
                self._packed.forget()
            outputs, memory = RecurrenceFunction.apply(  # type: ignore[no-untyped-call]
                inputs, *self._stacked_parameters(), output, memory, batch_sizes, *clips
            )
        else:
            weights = self._packed(parameters, dtype, lambda: LstmWeights(*self._stacked_parameters(), *clips, dtype))
            memory = memory.clone()
            outputs = run_lstms(weights, inputs, batch_sizes, output, memory)
        return outputs, memory

    def _stacked_parameters(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        kernels, biases, projections = zip(*(lstm.recurrent_parameters() for lstm in self.lstms), strict=True)
        return torch.stack(kernels), torch.stack(biases), torch.stack(projections)
