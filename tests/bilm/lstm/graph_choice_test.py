import logging
from types import SimpleNamespace

import pytest
import torch

from elmo_tasks.bilm.lstm import bidirectional_layer, graph_choice
from elmo_tasks.bilm.lstm.graph_pool import RecordingError
from tests.bilm.helpers import random_bilm
from tests.bilm.lstm.replaying_pool import ReplayingPool

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


class ForgetfulPool(ReplayingPool):
    """A driver that records nothing."""

    def record(self, steps):
        super().record(steps)
        return SimpleNamespace(replay=lambda: None)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A process that has tested nothing, on a machine whose pool is on the CPU."""
    monkeypatch.setattr(graph_choice, "_VERDICTS", {})
    monkeypatch.setattr(graph_choice, "_OFF", set())
    monkeypatch.setattr(graph_choice, "_WARNED", {})
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.delenv("ELMO_TASKS_CUDA_GRAPHS", raising=False)
    use(monkeypatch, ReplayingPool())
    return monkeypatch


def use(process: pytest.MonkeyPatch, pool: ReplayingPool) -> None:
    process.setattr(graph_choice, "pool_of", lambda device: pool)
    process.setattr(bidirectional_layer, "pool_of", lambda device: pool)


def inputs(dtype: torch.dtype = torch.float32) -> SimpleNamespace:
    return SimpleNamespace(is_cuda=True, device=GPU, dtype=dtype)


class TestFirstDifference:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
    @pytest.mark.parametrize("mode", [False, True])
    def test_graphs_that_equal_the_loop_pass(self, process, dtype, mode):
        """Oracle: by hand; a replay runs the steps again. In inference mode, too."""
        with torch.inference_mode(mode):
            assert graph_choice.first_difference(CPU, dtype) is None

    def test_graphs_that_compute_something_else_do_not(self, process):
        """Oracle: by hand; a graph that does nothing."""
        use(process, ForgetfulPool())
        assert "their results differ by" in graph_choice.first_difference(CPU, torch.float32)

    def test_what_cannot_be_recorded_is_an_error(self, process):
        """Oracle: the error of the pool."""
        use(process, ReplayingPool(most=0))
        with pytest.raises(RecordingError, match="not permitted"):
            graph_choice.first_difference(CPU, torch.float32)


class TestGraphsAreUsed:
    def test_they_are_tested_once_for_each_type(self, process):
        """Oracle: the calls of the test."""
        calls = []
        process.setattr(graph_choice, "first_difference", lambda *key: calls.append(key))
        for dtype in (torch.float32, torch.bfloat16) * 2:
            assert graph_choice.graphs_are_used(inputs(dtype))
        assert calls == [(GPU, torch.float32), (GPU, torch.bfloat16)]

    @pytest.mark.parametrize(
        ("pool", "reason"),
        [
            (ReplayingPool(most=0), "RecordingError: RuntimeError: operation not permitted when stream is capturing"),
            (ReplayingPool(most=2), "RecordingError: RuntimeError: operation not permitted when stream is capturing"),
            (ForgetfulPool(), "their results differ by"),
        ],
        ids=["nothing can be recorded", "memory for two", "another result"],
    )
    def test_after_a_failure_there_is_one_warning_and_no_graph(self, process, caplog, pool, reason):
        """Oracle: by hand: for each type; the memory of graphs is free again."""
        use(process, pool)
        test = graph_choice.first_difference
        process.setattr(graph_choice, "first_difference", lambda device, dtype: test(CPU, dtype))
        with caplog.at_level(logging.WARNING):
            for dtype in (torch.float32, torch.bfloat16, torch.float32):
                assert not graph_choice.graphs_are_used(inputs(dtype))
        (record,) = caplog.records
        assert reason in record.getMessage() and "\n" not in record.getMessage()
        assert "cuda:0" in record.getMessage() and "ELMO_TASKS_CUDA_GRAPHS=0" in record.getMessage()
        assert pool.size().n_graphs == pool.size().n_bytes == 0

    def test_where_they_are_not_used(self, process):
        """Oracle: by hand: on a CPU, switched off, and while the caller records; nothing is tested."""

        def fail(*arguments):
            raise AssertionError("nothing is to be tested")

        process.setattr(graph_choice, "first_difference", fail)
        assert not graph_choice.graphs_are_used(torch.zeros(1))
        with process.context() as patch:
            patch.setenv("ELMO_TASKS_CUDA_GRAPHS", "0")
            assert not graph_choice.graphs_are_used(inputs())
        process.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        assert not graph_choice.graphs_are_used(inputs())
        assert not graph_choice._VERDICTS


class TestBilmWhoseGraphsFail:
    BATCH = ([f"w{index}" for index in range(20)], [], ["a"] * 9, ["b"])

    @pytest.mark.parametrize("most", [0, 1, 3])
    def test_it_computes_without_them(self, process, caplog, most):
        """Oracle: the layers without graphs; the first failure is logged, and nothing is recorded after it."""
        expected = random_bilm()(self.BATCH).layers
        pool = ReplayingPool(most)
        use(process, pool)
        process.setattr(bidirectional_layer, "graphs_are_used", lambda inputs: inputs.device not in graph_choice._OFF)
        bilm = random_bilm()
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                torch.testing.assert_close(bilm(self.BATCH).layers, expected, rtol=0, atol=1e-6)
        (record,) = caplog.records
        assert "(RuntimeError: operation not permitted when stream is capturing)" in record.getMessage()
        assert pool.n_recorded == most and not pool.size().n_graphs
