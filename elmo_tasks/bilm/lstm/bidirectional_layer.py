"""A layer of the biLM: the LSTMs of both directions, run in one loop."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from elmo_tasks.bilm.lstm.cuda_graphs import GraphedRecurrence
from elmo_tasks.bilm.lstm.graph_choice import graphs_are_used, turn_off
from elmo_tasks.bilm.lstm.graph_pool import RecordingError, pool_of
from elmo_tasks.bilm.lstm.precision import tf32_is_on
from elmo_tasks.bilm.lstm.projected_lstm import LstmState, ProjectedLstm
from elmo_tasks.bilm.lstm.recurrence import LstmWeights, RecurrenceFunction, run_lstms
from elmo_tasks.bilm.lstm.weight_cache import WeightCache

__all__ = ["BidirectionalLayer"]


class BidirectionalLayer:
    """
    LSTMs of the same shape, run in one loop over the words: with gradients where they are needed, and otherwise with
    weights that are packed once; on CUDA also from recorded graphs.

    # Parameters

    lstms
        The LSTMs. Their parameters are registered elsewhere: this is not a module.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm]) -> None:
        self.lstms = tuple(lstms)
        self._weights: WeightCache[LstmWeights] = WeightCache()
        self._graphs: WeightCache[GraphedRecurrence] = WeightCache()

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
        # Parameters

        inputs
            Shape `(n_lstms, n_words, input_dim)`: for each LSTM the words of all sentences as
            `torch.nn.utils.rnn.PackedSequence` lays them out, that is step by step, and within a step from the longest
            sentence to the shortest.
        batch_sizes
            The number of sentences that have a word at each step; never increasing.
        states
            For each LSTM the state before the first words, with `batch_sizes[0]` rows. `None`: zero.
        dtype
            The type of the products. `None`: that of the parameters.
        returns_states
            Whether the states after the last words are returned; on CUDA, no graphs are used then.

        # Returns

        `Tuple[torch.Tensor, Optional[Sequence[LstmState]]]`
            The outputs, of shape `(n_lstms, n_words, projection_dim)` and of type `dtype`, laid out as `inputs`; and,
            if that was asked for, for each LSTM the state after the last word of each sentence.
        """
        with _current(inputs.device):
            return self._outputs_and_states(inputs, batch_sizes, states, dtype, returns_states)

    def _outputs_and_states(
        self,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        states: Sequence[LstmState] | None,
        dtype: torch.dtype | None,
        returns_states: bool,
    ) -> tuple[torch.Tensor, Sequence[LstmState] | None]:
        parameters = [parameter for lstm in self.lstms for parameter in lstm.parameters()]
        dtype = dtype or parameters[0].dtype
        inputs = inputs.to(dtype)
        clips = self.lstms[0].cell_clip, self.lstms[0].projection_clip
        begin = [lstm.zero_state(batch_sizes[0]) for lstm in self.lstms] if states is None else states
        output, memory = (torch.stack(parts) for parts in zip(*begin, strict=True))
        output = output.to(dtype)
        is_frozen = not any(parameter.requires_grad for parameter in parameters)
        outputs: torch.Tensor | None = None
        if torch.is_grad_enabled() and (inputs.requires_grad or not is_frozen):
            if not is_frozen:
                self._weights.forget()
                self._graphs.forget()
            outputs, memory = RecurrenceFunction.apply(  # type: ignore[no-untyped-call]
                inputs, *self._stacked_parameters(), output, memory, batch_sizes, *clips
            )
        else:
            weights = self._weights(
                parameters, dtype, lambda: LstmWeights.of(*self._stacked_parameters(), *clips, dtype)
            )
            # For LSTMs in training nothing is kept, and a graph that is replayed once does not pay for its recording.
            if not returns_states and is_frozen and graphs_are_used(inputs):
                given = None if states is None else (output, memory)
                outputs = self._from_graphs(weights, parameters, inputs, batch_sizes, given)
            if outputs is None:
                outputs = run_lstms(weights, inputs, batch_sizes, output, memory)
        if not returns_states:
            return outputs, None
        return outputs, list(zip(outputs[:, _last_rows(batch_sizes)], memory, strict=True))

    def _from_graphs(
        self,
        weights: LstmWeights,
        parameters: Sequence[torch.Tensor],
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        begin: LstmState | None,
    ) -> torch.Tensor | None:
        """The outputs; `None` if a graph cannot be recorded."""
        # Whether TF32 is used is recorded in a graph.
        key = inputs.dtype, tf32_is_on()
        try:
            graphed = self._graphs(parameters, key, lambda: GraphedRecurrence(weights, pool_of(inputs.device)))
            return graphed(inputs, batch_sizes, begin)
        except RecordingError as error:
            reason = str(error)
        turn_off(inputs.device, reason)
        return None

    def _stacked_parameters(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        kernels, biases, projections = zip(*(lstm.recurrent_parameters() for lstm in self.lstms), strict=True)
        return torch.stack(kernels), torch.stack(biases), torch.stack(projections)


def _current(device: torch.device) -> AbstractContextManager[object]:
    """Makes a GPU the current one: graphs are recorded on it, and Triton starts its kernels there."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _last_rows(batch_sizes: Sequence[int]) -> list[int]:
    """The packed row of the last word of each sentence."""
    rows = [0] * batch_sizes[0]
    start = 0
    for size in batch_sizes:
        rows[:size] = range(start, start + size)
        start += size
    return rows
