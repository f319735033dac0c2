"""
The loop over words on CUDA, without gradients: a few steps are recorded once as a CUDA graph and then replayed.

A step is four small kernels; launching each from Python would take longer than running it.
"""

from bisect import bisect_left
from collections.abc import Sequence

import torch

from elmo_tasks.bilm.lstm.graph_pool import GraphPool
from elmo_tasks.bilm.lstm.projected_lstm import LstmState
from elmo_tasks.bilm.lstm.recurrence import LstmWeights, run_lstms

__all__ = ["GraphedRecurrence", "rectangles"]

# The number of steps of a graph: enough for the launch of a replay to cost little, and few enough to waste little on
# sentences that end in the middle of one.
_STEPS = 8
# The numbers of rows that a graph can have; above the last one, multiples of it.
_ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


class GraphedRecurrence:
    """
    As `run_lstms`, for both directions of one layer on CUDA. Threads may share it.

    # Parameters

    weights
        Of both directions, stacked.
    pool
        Of the GPU. It bounds the number of graphs, here and elsewhere; a graph that it has dropped is recorded again.
    """

    def __init__(self, weights: LstmWeights, pool: GraphPool) -> None:
        self._weights = weights
        self._pool = pool
        self._graphs: dict[int, _Graph] = {}

    def __call__(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], begin: LstmState | None = None
    ) -> torch.Tensor:
        """
        # Parameters

        inputs
            Shape `(2, n_words, input_dim)`, packed.
        batch_sizes
            The number of sentences that have a word at each step; never increasing.
        begin
            Output and memory before the first words, of shape `(2, batch_sizes[0], projection_dim)` and `(2,
            batch_sizes[0], cell_dim)`; the memory may be changed. `None`: zero.

        # Returns

        `torch.Tensor`
            Shape `(2, n_words, projection_dim)`.

        # Raises

        `RecordingError`
            If a graph cannot be recorded.
        """
        cell_dim, projection_dim = self._weights.dims
        # Steps with too many rows for a graph come first: sentences only end.
        n_steps = self._n_steps_without(inputs, batch_sizes)
        with self._pool.entered() as stream:
            if begin is None:
                output = inputs.new_zeros(2, batch_sizes[0], projection_dim)
                memory = inputs.new_zeros(2, batch_sizes[0], cell_dim, dtype=_memory_dtype(inputs))
            else:
                output, memory = begin
            outputs = inputs.new_empty(2, inputs.size(1), projection_dim)
            end = sum(batch_sizes[:n_steps])
            if n_steps:
                sizes = batch_sizes[:n_steps]
                run_lstms(self._weights, inputs[:, :end], sizes, output, memory, outputs=outputs[:, :end])
                output = outputs[:, end - sizes[-1] : end]
            last = None
            for n_rows, places in rectangles(batch_sizes[n_steps:]):
                graph = self._graph(n_rows, inputs, stream)
                if graph is not last:
                    graph.continue_from(output, memory)
                    last, output, memory = graph, graph.output, graph.memory
                start, end = end, end + len(places)
                at: slice | torch.Tensor = slice(len(places))
                if places[-1] >= len(places):
                    # Pinned, so that the copy is asynchronous.
                    at = torch.tensor(places).pin_memory().to(inputs.device, non_blocking=True)
                graph.inputs[:, at] = inputs[:, start:end]
                graph.replay()
                outputs[:, start:end] = graph.outputs[:, at]
        return outputs

    def _n_steps_without(self, inputs: torch.Tensor, batch_sizes: Sequence[int]) -> int:
        """The number of steps, from the first one on, that no graph is recorded for."""
        for first in range(0, len(batch_sizes), _STEPS):
            if self._pool.holds(_n_bytes(self._weights, _rounded_up(batch_sizes[first]), inputs)):
                return first
        return len(batch_sizes)

    def _graph(self, n_rows: int, inputs: torch.Tensor, stream: "torch.cuda.Stream") -> "_Graph":
        graph = self._graphs.get(n_rows)
        if graph is None or graph.is_dropped:
            # Tensors made in inference mode cannot be written to outside of it.
            with torch.inference_mode(False), torch.no_grad():
                graph = self._graphs[n_rows] = _Graph(self._weights, n_rows, inputs, stream, self._pool)
            self._pool.add(graph)
        self._pool.use(graph)
        graph.use_on(stream)
        return graph


class _Graph:
    """A few steps with a fixed number of rows; `output` and `memory` carry the state from replay to replay."""

    def __init__(
        self, weights: LstmWeights, n_rows: int, like: torch.Tensor, stream: "torch.cuda.Stream", pool: GraphPool
    ) -> None:
        cell_dim, projection_dim = weights.dims
        self.n_bytes = _n_bytes(weights, n_rows, like)
        self.inputs = like.new_zeros(2, _STEPS * n_rows, like.size(-1))
        self.outputs = like.new_zeros(2, _STEPS * n_rows, projection_dim)
        self.output = like.new_zeros(2, n_rows, projection_dim)
        self.memory = like.new_zeros(2, n_rows, cell_dim, dtype=_memory_dtype(like))
        self._stream = stream
        # The weights must stay where they are.
        self._weights: LstmWeights | None = weights

        def steps() -> None:
            run_lstms(weights, self.inputs, [n_rows] * _STEPS, self.output, self.memory, outputs=self.outputs)
            self.output.copy_(self.outputs[:, -n_rows:])

        self._graph: torch.cuda.CUDAGraph | None = pool.record(steps)

    @property
    def is_dropped(self) -> bool:
        """Whether the pool has dropped it."""
        return self._graph is None

    def drop(self) -> None:
        """Frees its memory."""
        self._graph = self._weights = None
        self.inputs = self.outputs = self.output = self.memory = self.inputs.new_empty(0)

    def use_on(self, stream: "torch.cuda.Stream") -> None:
        """Announces work on a stream: on another one than it was made on, torch must know before it frees memory."""
        if stream != self._stream:
            for buffer in (self.inputs, self.outputs, self.output, self.memory):
                buffer.record_stream(stream)

    def continue_from(self, output: torch.Tensor, memory: torch.Tensor) -> None:
        """Starts from a state of as many sentences as the next step has, or more."""
        n_rows = min(self.output.size(1), output.size(1))
        self.output[:, :n_rows].copy_(output[:, :n_rows])
        self.memory[:, :n_rows].copy_(memory[:, :n_rows])

    def replay(self) -> None:
        """Computes `outputs` from `inputs`, both of shape `(2, steps * rows, dim)`; the state moves on."""
        assert self._graph is not None
        self._graph.replay()


def rectangles(batch_sizes: Sequence[int]) -> list[tuple[int, list[int]]]:
    """
    Cuts packed sentences into rectangles of `_STEPS` steps.

    # Returns

    `List[Tuple[int, List[int]]]`
        For each rectangle its number of rows, and the position in the rectangle of each of its words, in the order of
        the packed words.
    """
    found = []
    for first in range(0, len(batch_sizes), _STEPS):
        sizes = batch_sizes[first : first + _STEPS]
        n_rows = _rounded_up(sizes[0])
        found.append((n_rows, [step * n_rows + row for step, size in enumerate(sizes) for row in range(size)]))
    return found


def _rounded_up(n_rows: int) -> int:
    if n_rows > _ROWS[-1]:
        return -(-n_rows // _ROWS[-1]) * _ROWS[-1]
    return _ROWS[bisect_left(_ROWS, n_rows)]


def _memory_dtype(inputs: torch.Tensor) -> torch.dtype:
    return torch.promote_types(inputs.dtype, torch.float32)


def _n_bytes(weights: LstmWeights, n_rows: int, like: torch.Tensor) -> int:
    """Of the buffers of a graph."""
    cell_dim, projection_dim = weights.dims
    of_type = _STEPS * like.size(-1) + (_STEPS + 1) * projection_dim
    return 2 * n_rows * (of_type * like.element_size() + cell_dim * _memory_dtype(like).itemsize)
