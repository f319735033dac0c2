"""A layer of the biLM without gradients, from weights that are packed once."""

from collections.abc import Sequence

import torch

from elmo_tasks.bilm.frozen_value import FrozenValue
from elmo_tasks.bilm.lstm.one_sentence import SentenceLstms, takes_one_row
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm, scaled_parameters
from elmo_tasks.bilm.lstm.recurrence import (
    ROWS_AT_ONCE,
    Clips,
    Recurrence,
    input_side_of,
    projection_of,
    recurrent_side_of,
    run_with_input_side,
)
from elmo_tasks.bilm.lstm.step_chunks import step_chunks
from elmo_tasks.bilm.packed_linear import StackedLinear

__all__ = ["FrozenLayer"]


class FrozenLayer:
    """
    LSTMs of the same shape without gradients. Weights are packed when they are first needed or have
    changed.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm], clips: Clips) -> None:
        self._lstms = lstms
        self._clips = clips
        # Separate, because one sentence on a CPU needs the first and the second, and a batch the
        # first and the third.
        self._input_side: FrozenValue[StackedLinear] = FrozenValue()
        self._sentence_lstms: FrozenValue[SentenceLstms] = FrozenValue()
        self._step_weights: FrozenValue[tuple[StackedLinear, StackedLinear]] = FrozenValue()

    def forget(self) -> None:
        """Drops the packed weights: the LSTMs are trained."""
        self._input_side.forget()
        self._sentence_lstms.forget()
        self._step_weights.forget()

    def __call__(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """See `BidirectionalLayer`."""
        parameters = [parameter for lstm in self._lstms for parameter in lstm.parameters()]

        def packed_input_side() -> StackedLinear:
            return input_side_of(scaled_parameters(self._lstms), dtype)

        def packed_step_weights() -> tuple[StackedLinear, StackedLinear]:
            scaled = scaled_parameters(self._lstms)
            return recurrent_side_of(scaled, dtype), projection_of(scaled, dtype)

        input_side = self._input_side(parameters, dtype, packed_input_side)
        if batch_sizes[0] == 1 and takes_one_row(parameters[0], dtype):
            sentence_lstms = self._sentence_lstms(
                parameters, dtype, lambda: SentenceLstms(self._lstms)
            )
            chunks = step_chunks(batch_sizes, ROWS_AT_ONCE["cpu"])
            return sentence_lstms(input_side(inputs[:, chunk.rows]) for chunk in chunks)
        recurrent_side, projection = self._step_weights(parameters, dtype, packed_step_weights)
        outputs = torch.empty_like(inputs)
        recurrence = Recurrence(outputs, projection, batch_sizes, self._clips)
        run_with_input_side(inputs, input_side, recurrent_side, recurrence)
        return outputs
