"""
The loop over words on CUDA, without gradients: a few steps are recorded once as a CUDA graph and then replayed.

A step is four small kernels; launching each from Python would take longer than running it.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence

import torch

from elmo_tasks.bilm.lstm.recurrence import LstmWeights, run_lstms

__all__ = ["GraphedRecurrence", "rectangles"]

# The number of steps of a graph: enough for the launch of a replay to cost little, and few enough to waste little on
# sentences that end in the middle of one.
_STEPS = 8
# The numbers of rows that a graph can have; above the last one, multiples of it.
_ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_MAX_GRAPHS = 24


class GraphedRecurrence:
    """
    As `run_lstms`, for both directions of one layer on CUDA.

    # Parameters

    weights
        Of both directions, stacked.
    """

    def __init__(self, weights: LstmWeights) -> None:
        self._weights = weights
        self._graphs: OrderedDict[int, _Graph] = OrderedDict()

    def __call__(self, inputs: torch.Tensor, batch_sizes: Sequence[int]) -> torch.Tensor:
        """
        # Parameters

        inputs
            Shape `(2, n_words, input_dim)`, packed.
        batch_sizes
            The number of sentences that have a word at each step; never increasing.

        # Returns

        `torch.Tensor`
            Shape `(2, n_words, projection_dim)`, from the zero state.
        """
        parts = []
        last, end = None, 0
        for n_rows, places in rectangles(batch_sizes):
            graph = self._graph(n_rows, inputs)
            if graph is not last:
                graph.continue_from(last)
                last = graph
            start, end = end, end + len(places)
            # Pinned, so that the copy is asynchronous.
            at = torch.tensor(places).pin_memory().to(inputs.device, non_blocking=True)
            graph.inputs[:, at] = inputs[:, start:end]
            parts.append(graph.replay()[:, at])
        return torch.cat(parts, 1)

    def _graph(self, n_rows: int, inputs: torch.Tensor) -> "_Graph":
        if n_rows not in self._graphs:
            if len(self._graphs) == _MAX_GRAPHS:
                self._graphs.popitem(last=False)
            # Tensors made in inference mode cannot be written to outside of it.
            with torch.inference_mode(False), torch.no_grad():
                self._graphs[n_rows] = _Graph(self._weights, n_rows, inputs)
        self._graphs.move_to_end(n_rows)
        return self._graphs[n_rows]


class _Graph:
    """A few steps with a fixed number of rows; `output` and `memory` carry the state from replay to replay."""

    def __init__(self, weights: LstmWeights, n_rows: int, like: torch.Tensor) -> None:
        cell_dim, projection_dim = weights.dims
        self.inputs = like.new_zeros(2, _STEPS * n_rows, like.size(-1))
        self.output = like.new_zeros(2, n_rows, projection_dim)
        self.memory = like.new_zeros(2, n_rows, cell_dim, dtype=torch.promote_types(like.dtype, torch.float32))
        steps = weights, self.inputs, [n_rows] * _STEPS, self.output, self.memory
        # A first run compiles kernels and initialises libraries, which cannot be recorded.
        stream = torch.cuda.Stream(like.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(like.device))
        with torch.cuda.stream(stream):
            run_lstms(*steps)
        torch.cuda.current_stream(like.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        # Other threads, such as those that pin memory for a data loader, may use CUDA meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._outputs = run_lstms(*steps)
            self.output.copy_(self._outputs[:, -n_rows:])

    def continue_from(self, before: "_Graph | None") -> None:
        """Starts from the state in which another graph, of at least as many rows, ended; `None`: from zero."""
        if before is None:
            self.output.zero_()
            self.memory.zero_()
        else:
            self.output.copy_(before.output[:, : self.output.size(1)])
            self.memory.copy_(before.memory[:, : self.memory.size(1)])

    def replay(self) -> torch.Tensor:
        """The outputs for `inputs`, of shape `(2, steps * rows, projection_dim)`; the next replay overwrites them."""
        self._graph.replay()
        return self._outputs


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
