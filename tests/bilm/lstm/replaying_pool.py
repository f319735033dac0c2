"""A pool of graphs on the CPU, which can record none: a graph runs its steps again when it is replayed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import torch

from elmo_tasks.bilm.lstm.graph_pool import GraphPool, RecordingError


class ReplayingPool(GraphPool):
    """
    # Parameters

    most
        How many recordings succeed; further ones fail.
    """

    def __init__(self, most: int | None = None) -> None:
        super().__init__(torch.device("cpu"))
        self.n_recorded = 0
        self.is_recording = False
        self._most = most

    @contextmanager
    def entered(self) -> Iterator[str]:
        with self._lock:
            yield "the stream"

    def record(self, steps: Callable[[], object]) -> SimpleNamespace:
        if self.n_recorded == self._most:
            raise RecordingError("RuntimeError: operation not permitted when stream is capturing")
        # As on CUDA, where a first run compiles kernels.
        steps()
        self.is_recording = True
        try:
            steps()
        except Exception as error:
            raise RecordingError(str(error)) from None
        finally:
            self.is_recording = False
        self.n_recorded += 1
        return SimpleNamespace(replay=steps)
