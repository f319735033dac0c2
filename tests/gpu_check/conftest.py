"""A GPU that is a CPU: graphs run their steps when they are replayed, and the functions of CUDA do nothing."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from elmo_tasks.bilm.lstm import bidirectional_layer, fast_cell, graph_choice
from elmo_tasks.gpu_check import graphs, layers, memory
from elmo_tasks.gpu_check.part import Setting
from tests.bilm.lstm.replaying_pool import ReplayingPool

CPU = torch.device("cpu")


class AsIfCuda(Setting):
    """A setting of a CPU that says it is a GPU."""

    is_cuda = True


@pytest.fixture(autouse=True)
def one_thread():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    layers._cases.cache_clear()
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ReplayingPool:
    """The pool of the GPU."""
    pool = ReplayingPool()
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    for module in (bidirectional_layer, graph_choice, graphs, memory):
        monkeypatch.setattr(module, "pool_of", lambda device: pool)
    monkeypatch.setattr(
        bidirectional_layer,
        "graphs_are_used",
        lambda inputs: fast_cell.is_switched_on() and inputs.device not in graph_choice._OFF,
    )
    monkeypatch.setattr(graph_choice, "_OFF", set())
    monkeypatch.setattr(fast_cell, "first_difference", lambda device, dtype: None)
    monkeypatch.setattr(fast_cell, "has_triton", lambda: True)
    monkeypatch.delenv("ELMO_TASKS_CUDA_GRAPHS", raising=False)

    def synchronize(*arguments: object) -> None:
        if pool.is_recording:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    stand_ins = {
        "synchronize": synchronize,
        "empty_cache": lambda: None,
        "Stream": lambda device=None: None,
        "stream": lambda stream: nullcontext(),
        "device": lambda device: nullcontext(),
        "device_count": lambda: 1,
        "get_device_capability": lambda device: (9, 0),
        "get_device_properties": lambda device: SimpleNamespace(
            name="GPU", major=9, minor=0, multi_processor_count=1, total_memory=2**34
        ),
        "mem_get_info": lambda device: (2**33, 2**34),
        "memory_allocated": lambda device: 2**20,
        "memory_reserved": lambda device: 2**21,
        "max_memory_allocated": lambda device: 2**22,
        "reset_peak_memory_stats": lambda device: None,
        "set_per_process_memory_fraction": lambda fraction, device: None,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    return pool
