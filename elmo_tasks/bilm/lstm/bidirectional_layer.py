"""A layer of the biLM: the LSTMs of both directions, run in one loop."""

from collections.abc import Sequence

import torch

from elmo_tasks.bilm.kernels.frozen import MadeOfWeights
from elmo_tasks.bilm.kernels.packed_linear import type_of_results
from elmo_tasks.bilm.lstm.projected_lstm import LstmState, ProjectedLstm
from elmo_tasks.bilm.lstm.recurrence import LstmWeights, RecurrenceFunction, run_lstms
from elmo_tasks.bilm.packing import rows_of_steps

__all__ = ["BidirectionalLayer"]


class BidirectionalLayer:
    """
    LSTMs of the same shape, run in one loop over the words: with gradients where needed, and otherwise with weights
    that are packed once. This is not a module: the parameters are registered elsewhere.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm]) -> None:
        self.lstms = tuple(lstms)
        self._packed: MadeOfWeights[LstmWeights] = MadeOfWeights()

    def __call__(
        self,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        states: Sequence[LstmState] | None = None,
        *,
        dtype: torch.dtype | None = None,
        returns_states: bool = False,
    ) -> tuple[torch.Tensor, Sequence[LstmState] | None]:
        """
        From inputs of shape `(n_lstms, n_words, input_dim)`, for each LSTM in the order of a `PackedBatch`, to outputs
        of shape `(n_lstms, n_words, projection_dim)`; with `returns_states`, also the state of each LSTM after the last
        word of each sentence. `states` are those before the first words, with `batch_sizes[0]` rows, by default zero.
        `dtype` is the type of the products, by default the parameters'. With `torch.int8`, inputs and outputs are
        float32.
        """
        parameters = [parameter for lstm in self.lstms for parameter in lstm.parameters()]
        dtype = dtype or parameters[0].dtype
        inputs = inputs.to(type_of_results(dtype))
        clips = self.lstms[0].cell_clip, self.lstms[0].projection_clip
        begin = [lstm.zero_state(batch_sizes[0]) for lstm in self.lstms] if states is None else states
        # Shape: (n_lstms, batch_sizes[0], projection_dim) and (n_lstms, batch_sizes[0], cell_dim)
        output, memory = (torch.stack(parts) for parts in zip(*begin, strict=True))
        output = output.to(inputs.dtype)
        is_trained = any(parameter.requires_grad for parameter in parameters)
        if torch.is_grad_enabled() and (inputs.requires_grad or is_trained):
            if is_trained:
                self._packed.forget()
            outputs, memory = RecurrenceFunction.apply(  # type: ignore[no-untyped-call]
                inputs, *self._stacked_parameters(), output, memory, batch_sizes, *clips
            )
        else:
            weights = self._packed(parameters, dtype, lambda: LstmWeights(*self._stacked_parameters(), *clips, dtype))
            outputs = run_lstms(weights, inputs, batch_sizes, output, memory)
        if not returns_states:
            return outputs, None
        return outputs, list(zip(outputs[:, _last_rows(batch_sizes)], memory, strict=True))

    def _stacked_parameters(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        kernels, biases, projections = zip(*(lstm.recurrent_parameters() for lstm in self.lstms), strict=True)
        return torch.stack(kernels), torch.stack(biases), torch.stack(projections)


def _last_rows(batch_sizes: Sequence[int]) -> list[int]:
    """The packed row of the last word of each sentence."""
    rows = [0] * batch_sizes[0]
    for step, size in rows_of_steps(batch_sizes):
        rows[:size] = range(step.start, step.stop)
    return rows
