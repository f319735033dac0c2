"""Tests of elmo_tasks.compat.allennlp_fixes.processes."""

import multiprocessing
import os
import pickle
from types import ModuleType, SimpleNamespace

import allennlp.commands.train
import pytest
import torch.distributed
from allennlp.common.tqdm import Tqdm
from allennlp.data.data_loaders import MultiProcessDataLoader

from elmo_tasks.compat.allennlp_fixes import processes


class Context:
    """A context of multiprocessing that starts nothing and records what it is asked to start."""

    def __init__(self):
        self.lock = multiprocessing.get_context("spawn").RLock()
        self.started = []

    def RLock(self):
        return self.lock

    def Pipe(self, duplex):
        return f"receiver {len(self.started)}", f"sender {len(self.started)}"

    def Process(self, *, target, args, daemon):
        assert daemon
        return SimpleNamespace(start=lambda: self.started.append((target, args)))


class TestLockInContextOfWorkers:
    @pytest.mark.parametrize("kind", ["instance", "batch"])
    def test_the_lock_is_made_by_the_context_that_makes_the_workers(self, kind, monkeypatch):
        """Oracle: the lock of a context of ours, in the arguments of both workers."""
        before = Tqdm.get_lock()
        context = Context()
        loader = SimpleNamespace(num_workers=2, _instance_worker="instance", _batch_worker="batch")
        try:
            start = getattr(MultiProcessDataLoader, f"_start_{kind}_workers")
            workers, senders = start(loader, "queue", context)
        finally:
            Tqdm.set_lock(before)
        assert [target for target, _ in context.started] == [kind, kind]
        assert [args for _, args in context.started] == [
            (worker, "queue", context.lock, f"receiver {worker}") for worker in (0, 1)
        ]
        assert len(workers) == 2 and senders == ["sender 0", "sender 1"]


@pytest.fixture
def process_group(tmp_path):
    """A process group of this process alone."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", world_size=1, rank=0)
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.fixture
def train_worker():
    """The fixed `_train_worker` of a module whose own returns its argument."""
    train = ModuleType("train")
    train._train_worker = lambda argument: argument
    processes.end_distributed_workers_cleanly(train)
    return train._train_worker


class TestEndDistributedWorkersCleanly:
    def test_the_process_group_is_destroyed(self, process_group, train_worker):
        """Oracle: torch."""
        assert train_worker("result") == "result"
        assert not torch.distributed.is_initialized()

    def test_a_worker_exits_before_gloo_is_torn_down(self, process_group, train_worker, monkeypatch):
        """Oracle: the order of the calls; exit functions first, since `os._exit` runs none."""
        calls = []
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a parent")
        monkeypatch.setattr("atexit._run_exitfuncs", lambda: calls.append("exit functions"))
        monkeypatch.setattr(os, "_exit", lambda status: calls.append(status))
        train_worker("result")
        assert calls == ["exit functions", 0]

    def test_training_in_one_process_returns(self, train_worker, monkeypatch):
        """Oracle: `os._exit` is not called, even in a child of another process."""
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a parent")
        monkeypatch.setattr(os, "_exit", lambda status: pytest.fail("left"))
        assert train_worker("result") == "result"

    def test_allennlp_uses_it_and_workers_find_it(self):
        """Oracle: pickle finds the same function by its name, as a spawned process does."""
        worker = allennlp.commands.train._train_worker
        assert worker.__wrapped__ is not None
        assert pickle.loads(pickle.dumps(worker)) is worker
