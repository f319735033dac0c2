"""
The loop over words on CUDA, without gradients: a few steps are recorded once as a CUDA graph and then replayed.

A step is four small kernels; starting each from Python would take longer than running it.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence

import torch

from elmo_tasks.bilm.lstm.recurrence import LstmWeights, run_lstms

__all__ = ["GraphedRecurrence", "rectangles"]

# A graph has this many steps: enough for the start of a replay to be nothing, and few enough for sentences that end in
# the middle of one.
_STEPS = 8
# A graph has one of these numbers of rows, or a multiple of the last.
_ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_MAX_GRAPHS = 24


class GraphedRecurrence:
    """
    As `run_lstms`, for both directions of one layer on CUDA.

    # Parameters

    weights : `LstmWeights`
        Of both directions, stacked.
    """

    def __init__(self, weights: LstmWeights) -> None:
        self._weights = weights
        self._graphs: OrderedDict[int, _Graph] = OrderedDict()

    def __call__(self, inputs: torch.Tensor, batch_sizes: Sequence[int]) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(2, n_words, input_dim)`, packed.
        batch_sizes : `Sequence[int]`
            How many sentences have a word at each step; never increasing.

        # Returns

        `torch.Tensor`
            Shape `(2, n_words, projection_dim)`, from the zero state.
        """
        parts = []
        last, end = None, 0
        for n_rows, places in rectangles(batch_sizes):
            graph = self._graph(n_rows, inputs)
            if graph is not last:
                graph.go_on_from(last)
                last = graph
            start, end = end, end + len(places)
            # Pinned, so that the copy waits for nothing.
            at = torch.tensor(places).pin_memory().to(inputs.device, non_blocking=True)
            graph.inputs[:, at] = inputs[:, start:end]
            parts.append(graph.replay()[:, at])
        return torch.cat(parts, 1)

    def _graph(self, n_rows: int, inputs: torch.Tensor) -> "_Graph":
        if n_rows not in self._graphs:
            if len(self._graphs) == _MAX_GRAPHS:
                self._graphs.popitem(last=False)
            # What is made in inference mode cannot be written to outside of it.
            with torch.inference_mode(False), torch.no_grad():
                self._graphs[n_rows] = _Graph(self._weights, n_rows, inputs)
        self._graphs.move_to_end(n_rows)
        return self._graphs[n_rows]


class _Graph:
    """A few steps with a fixed number of rows; `output` and `memory` go on from replay to replay."""

    def __init__(self, weights: LstmWeights, n_rows: int, like: torch.Tensor) -> None:
        cell_dim, projection_dim = weights.dims
        self.inputs = like.new_zeros(2, _STEPS * n_rows, like.size(-1))
        self.output = like.new_zeros(2, n_rows, projection_dim)
        self.memory = like.new_zeros(2, n_rows, cell_dim, dtype=torch.promote_types(like.dtype, torch.float32))
        steps = weights, self.inputs, [n_rows] * _STEPS, self.output, self.memory
        # Kernels are compiled and libraries set up on a first run, which may not be recorded.
        stream = torch.cuda.Stream(like.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(like.device))
        with torch.cuda.stream(stream):
            run_lstms(*steps)
        torch.cuda.current_stream(like.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        # Other threads, those that pin memory for a data loader, may go on with CUDA meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._outputs = run_lstms(*steps)
            self.output.copy_(self._outputs[:, -n_rows:])

    def go_on_from(self, before: "_Graph | None") -> None:
        """Takes over the state that another graph, of at least as many rows, has come to; `None`: zero."""
        if before is None:
            self.output.zero_()
            self.memory.zero_()
        else:
            self.output.copy_(before.output[:, : self.output.size(1)])
            self.memory.copy_(before.memory[:, : self.memory.size(1)])

    def replay(self) -> torch.Tensor:
        """The outputs for what is in `inputs`, of shape `(2, steps * rows, projection_dim)`, until the next replay."""
        self._graph.replay()
        return self._outputs


def rectangles(batch_sizes: Sequence[int]) -> list[tuple[int, list[int]]]:
    """
    Cuts packed sentences into rectangles of `_STEPS` steps.

    # Returns

    `List[Tuple[int, List[int]]]`
        For each rectangle how many rows a step has in it, and at which position of the rectangle each of its words
        is, in the order of the packed words.
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
