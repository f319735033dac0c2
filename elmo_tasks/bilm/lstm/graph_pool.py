"""The pool of recorded CUDA graphs: one for each GPU, shared by all biLMs, and bounded."""

import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import torch

__all__ = ["GraphPool", "PoolSize", "RecordingError", "pool_of"]

logger = logging.getLogger(__name__)

# Bounds of a pool: the graphs, whose nodes the driver keeps, and the bytes of their buffers. Temporary results, which
# all graphs share, come on top: at the original size in float32 0.7 GiB, in any other case less.
_MAX_GRAPHS = 64
_MAX_BYTES = 3 * 2**28
# With so many rows a step takes longer than starting its kernels, and buffers would push out many smaller ones: 512
# rows of the original size in float32.
_MAX_BYTES_OF_GRAPH = 2**26


class RecordingError(Exception):
    """A graph that could not be recorded; the message is the reason, in one line."""


class Pooled(Protocol):
    """A graph in the pool, which its owner keeps alive."""

    n_bytes: int

    def drop(self) -> None: ...


@dataclass(frozen=True)
class PoolSize:
    """
    # Parameters

    n_graphs
        The graphs that are kept.
    n_bytes
        Of their buffers, without the temporary results that all of them share.
    """

    n_graphs: int
    n_bytes: int


class GraphPool:
    """
    The graphs of one GPU. All are recorded on one stream, so that cuBLAS has one workspace for them, and share the
    memory of their temporary results; their buffers are ordinary tensors. Graphs of different threads and streams are
    therefore replayed one after the other: see `entered`.

    # Parameters

    device
        The GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._lock = threading.RLock()
        self._stream: torch.cuda.Stream | None = None
        self._handle: Any = None
        # The least recently used first.
        self._graphs: OrderedDict[int, weakref.ref[Pooled]] = OrderedDict()
        self._last_stream: torch.cuda.Stream | None = None

    @contextmanager
    def entered(self) -> Iterator[torch.cuda.Stream]:
        """Graphs may be recorded and replayed in the block, on the current stream, which is given."""
        with self._lock:
            stream = torch.cuda.current_stream(self._device)
            # What another thread has replayed on a stream of its own may not be done yet.
            if self._last_stream is not None and self._last_stream != stream:
                stream.wait_stream(self._last_stream)
            self._last_stream = stream
            yield stream

    def holds(self, n_bytes: int) -> bool:
        """Whether a graph with buffers of this size is worth to be recorded."""
        return n_bytes <= _MAX_BYTES_OF_GRAPH

    def record(self, steps: Callable[[], object]) -> torch.cuda.CUDAGraph:
        """
        Records what a function computes. It is called twice: the first call compiles kernels and loads libraries,
        which cannot be recorded.

        # Raises

        `RecordingError`
            If that fails, for whatever reason.
        """
        try:
            return self._record(steps)
        except Exception as error:
            # Not the error itself, whose traceback would keep tensors alive.
            reason = f"{type(error).__name__}: {str(error).strip() or 'without a message'}".splitlines()[0]
        _mend(self._device, self._handle)
        self._handle = None
        raise RecordingError(reason)

    def _record(self, steps: Callable[[], object]) -> torch.cuda.CUDAGraph:
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        if self._handle is None or not self._alive():
            # torch refuses the memory of graphs that are all gone.
            self._handle = torch.cuda.graph_pool_handle()
        current = torch.cuda.current_stream(self._device)
        graph = torch.cuda.CUDAGraph()
        # torch leaves its own stream set if a recording fails; this block sets the former one again.
        with torch.cuda.stream(current):
            self._stream.wait_stream(current)
            with torch.cuda.stream(self._stream):
                steps()
            current.wait_stream(self._stream)
            # Other threads, such as those that pin memory for a data loader, may use CUDA meanwhile.
            with torch.cuda.graph(graph, pool=self._handle, stream=self._stream, capture_error_mode="thread_local"):
                steps()
        return graph

    def add(self, graph: Pooled) -> None:
        """Adds a graph that was recorded; the least recently used ones are dropped if there are too many."""
        # Another graph that is gone may have had the same number.
        self._graphs.pop(id(graph), None)
        self._graphs[id(graph)] = weakref.ref(graph)
        size = self.size()
        logger.debug(
            "recorded a CUDA graph on %s: now %d, with %.1f MiB of buffers",
            self._device,
            size.n_graphs,
            size.n_bytes / 2**20,
        )
        alive = self._alive()
        while len(alive) > 1 and (len(alive) > _MAX_GRAPHS or sum(each.n_bytes for each in alive) > _MAX_BYTES):
            oldest = alive.pop(0)
            del self._graphs[id(oldest)]
            oldest.drop()

    def use(self, graph: Pooled) -> None:
        """Makes a graph the most recently used one."""
        self._graphs.move_to_end(id(graph))

    def size(self) -> PoolSize:
        """What the pool holds."""
        with self._lock:
            alive = self._alive()
            return PoolSize(len(alive), sum(graph.n_bytes for graph in alive))

    def clear(self) -> None:
        """Drops all graphs."""
        with self._lock:
            for graph in self._alive():
                graph.drop()
            self._graphs.clear()

    def _alive(self) -> list[Pooled]:
        """The graphs whose owners are still there, the least recently used first."""
        found = {key: reference() for key, reference in list(self._graphs.items())}
        for key, graph in found.items():
            if graph is None:
                del self._graphs[key]
        return [graph for graph in found.values() if graph is not None]


def _mend(device: torch.device, handle: Any) -> None:
    """
    Ends what a recording that failed can leave open in torch: its random numbers of the GPU, which would refuse to be
    drawn outside of a recording (a copy of their state has the same numbers), and its allocation of memory.
    """
    with suppress(Exception):
        generator = torch.cuda.default_generators[device.index]
        generator.graphsafe_set_state(generator.clone_state())
    # A private name. It raises an error where nothing is open.
    with suppress(Exception):
        torch._C._cuda_endAllocateToPool(device.index, handle)


_POOLS: dict[torch.device, GraphPool] = {}


def pool_of(device: torch.device) -> GraphPool:
    """The pool of a GPU, which has a number."""
    # `setdefault` is atomic: threads that come first at the same time get the same pool.
    return _POOLS.get(device) or _POOLS.setdefault(device, GraphPool(device))
