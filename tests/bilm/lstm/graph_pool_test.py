import gc
import logging
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from elmo_tasks.bilm.lstm import graph_pool
from elmo_tasks.bilm.lstm.graph_pool import GraphPool, PoolSize, RecordingError

GPU = torch.device("cuda", 0)


class Graph:
    """A graph in the pool."""

    def __init__(self, n_bytes: int = 1) -> None:
        self.n_bytes = n_bytes
        self.is_dropped = False

    def drop(self) -> None:
        self.is_dropped = True


class Cuda(SimpleNamespace):
    """What a pool uses of `torch.cuda`, with the events in their order; `refuses`: the driver ends no recording."""

    def __init__(self) -> None:
        super().__init__(refuses=False, events=[], n_handles=0, is_recording=False)
        self.current = self.Stream("cuda:0", "default")
        self.default_generators = []

    def Stream(self, device: object, name: str = "recording") -> SimpleNamespace:
        events = self.events
        return SimpleNamespace(name=name, wait_stream=lambda other: events.append(f"{name} waits for {other.name}"))

    def current_stream(self, device: object) -> SimpleNamespace:
        return self.current

    def graph_pool_handle(self) -> str:
        self.n_handles += 1
        return f"memory {self.n_handles}"

    def CUDAGraph(self) -> SimpleNamespace:
        return SimpleNamespace()

    @contextmanager
    def stream(self, stream: SimpleNamespace):
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph: SimpleNamespace, *, pool: str, stream: SimpleNamespace, capture_error_mode: str):
        """As torch's: if the driver refuses, the stream stays set."""
        self.events.append(f"begins in {pool}, {capture_error_mode}")
        self.current, before = stream, self.current
        try:
            yield
        finally:
            if self.refuses:
                raise RuntimeError("CUDA error: operation failed due to a previous error during capture\nDetails")
            self.current = before


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    found = Cuda()
    monkeypatch.setattr(graph_pool, "torch", SimpleNamespace(cuda=found))
    return found


class TestRecord:
    def test_steps_run_once_before_they_are_recorded_on_the_same_stream(self, cuda):
        """Oracle: the events by hand; the current stream afterwards is that of before."""
        pool = GraphPool(GPU)
        assert pool.record(lambda: cuda.events.append(f"steps on {cuda.current.name}")) is not None
        assert cuda.events == [
            "recording waits for default",
            "steps on recording",
            "default waits for recording",
            "begins in memory 1, thread_local",
            "steps on recording",
        ]
        assert cuda.current.name == "default"

    def test_graphs_share_one_stream_and_one_memory_as_long_as_one_of_them_is_there(self, cuda):
        """Oracle: by hand; torch refuses the memory of graphs that are all gone."""
        pool, first = GraphPool(GPU), Graph()
        pool.record(lambda: None)
        pool.add(first)
        stream = pool._stream
        pool.record(lambda: None)
        assert cuda.n_handles == 1 and pool._stream is stream
        del first
        gc.collect()
        pool.record(lambda: None)
        assert cuda.n_handles == 2 and pool._stream is stream

    @pytest.mark.parametrize("refuses", [False, True])
    def test_a_failure_is_one_line_and_the_stream_is_that_of_before(self, cuda, refuses):
        """Oracle: by hand: the error is of the steps, or of the driver, where torch leaves its own stream set."""
        cuda.refuses = refuses
        calls = []

        def steps() -> None:
            calls.append(cuda.current.name)
            if len(calls) == 2 and not refuses:
                raise torch.OutOfMemoryError("CUDA out of memory.\nTried")

        expected = "RuntimeError: CUDA error: operation failed" if refuses else "OutOfMemoryError: CUDA out of memory."
        pool = GraphPool(GPU)
        with pytest.raises(RecordingError, match=expected) as caught:
            pool.record(steps)
        assert "\n" not in str(caught.value) and cuda.current.name == "default"
        # Its traceback would keep the tensors of the steps.
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        cuda.refuses = False
        calls.clear()
        calls.extend("ab")
        pool.record(steps)
        assert cuda.n_handles == 2

    def test_random_numbers_still_work_after_a_failure(self, cuda):
        """Oracle: by hand; a CPU's generator stands for the GPU's: it gets a copy of its own state."""
        states = []
        generator = SimpleNamespace(clone_state=lambda: "a copy", graphsafe_set_state=states.append)
        cuda.default_generators = [generator]
        cuda.refuses = True
        with pytest.raises(RecordingError):
            GraphPool(GPU).record(lambda: None)
        assert states == ["a copy"]


class TestSize:
    def test_the_least_recently_used_graphs_are_dropped_by_their_number(self, monkeypatch):
        """Oracle: the order of use, by hand."""
        monkeypatch.setattr(graph_pool, "_MAX_GRAPHS", 2)
        pool, graphs = GraphPool(GPU), [Graph(), Graph(), Graph()]
        for graph in graphs[:2]:
            pool.add(graph)
        pool.use(graphs[0])
        pool.add(graphs[2])
        assert [graph.is_dropped for graph in graphs] == [False, True, False]
        assert pool.size() == PoolSize(2, 2)

    def test_and_by_their_bytes_but_the_newest_stays(self, monkeypatch):
        """Oracle: sums by hand."""
        monkeypatch.setattr(graph_pool, "_MAX_BYTES", 10)
        pool, graphs = GraphPool(GPU), [Graph(4), Graph(5), Graph(2), Graph(11)]
        sizes = []
        for graph in graphs:
            pool.add(graph)
            sizes.append(pool.size())
        assert sizes == [PoolSize(1, 4), PoolSize(2, 9), PoolSize(2, 7), PoolSize(1, 11)]

    def test_graphs_without_an_owner_do_not_count(self):
        """Oracle: by hand; a graph that has the number of one that is gone is the newest."""
        pool, graph = GraphPool(GPU), Graph(7)
        pool.add(graph)
        del graph
        gc.collect()
        assert pool.size() == PoolSize(0, 0)

    def test_it_is_said_in_the_log(self, caplog):
        """Oracle: the line by hand."""
        pool, graph = GraphPool(GPU), Graph(3 * 2**20)
        with caplog.at_level(logging.DEBUG):
            pool.add(graph)
        assert caplog.messages == ["recorded a CUDA graph on cuda:0: now 1, with 3.0 MiB of buffers"]

    def test_clear_drops_all(self):
        """Oracle: by hand."""
        pool, graphs = GraphPool(GPU), [Graph(), Graph()]
        for graph in graphs:
            pool.add(graph)
        pool.clear()
        assert all(graph.is_dropped for graph in graphs) and pool.size() == PoolSize(0, 0)

    def test_there_is_one_pool_for_each_gpu(self, monkeypatch):
        """Oracle: identity."""
        monkeypatch.setattr(graph_pool, "_POOLS", {})
        first, second = (graph_pool.pool_of(torch.device("cuda", index)) for index in range(2))
        assert first is not second and graph_pool.pool_of(GPU) is first


class TestEntered:
    def test_a_stream_waits_for_the_one_that_was_used_before(self, cuda):
        """Oracle: the events by hand; on the same stream there is nothing to wait for."""
        pool, other = GraphPool(GPU), cuda.Stream(GPU, "other")
        for stream in (cuda.current, cuda.current, other, other):
            cuda.current = stream
            with pool.entered() as entered:
                assert entered is stream
        assert cuda.events == ["other waits for default"]

    def test_threads_enter_one_after_the_other(self, cuda):
        """Oracle: while a thread is inside, another one is not."""
        pool, inside, is_in = GraphPool(GPU), [], threading.Event()

        def enter() -> None:
            with pool.entered():
                inside.append("other")
            is_in.set()

        with pool.entered():
            thread = threading.Thread(target=enter)
            thread.start()
            assert not is_in.wait(0.1) and not inside
        assert is_in.wait(120) and inside == ["other"]
        thread.join()
