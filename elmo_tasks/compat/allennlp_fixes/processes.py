"""
Worker processes of data loaders and of distributed training.
"""

import atexit
import functools
import multiprocessing
import os
from collections.abc import Callable
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = [
    "end_distributed_workers_cleanly",
    "lock_in_context_of_workers",
    "refuse_evaluation_after_distributed_training",
]


def lock_in_context_of_workers(multiprocess_data_loader: Module) -> None:
    """
    Symptom: a data loader with `num_workers: 1` and `start_method: "spawn"` raises `RuntimeError: A SemLock
    created in a fork context is being shared with a process in a spawn context`.

    Cause: the lock of the progress bar is made in the default context and passed to workers of another one. Python
    checks that since 3.11.
    """
    loader = multiprocess_data_loader.MultiProcessDataLoader
    tqdm = multiprocess_data_loader.Tqdm

    def start_workers(self: Any, target: Callable[..., None], queue: Any, ctx: Any) -> tuple[list[Any], list[Any]]:
        tqdm.set_lock(ctx.RLock())
        workers, senders = [], []
        for worker_id in range(self.num_workers):
            receiver, sender = ctx.Pipe(duplex=False)
            worker = ctx.Process(target=target, args=(worker_id, queue, tqdm.get_lock(), receiver), daemon=True)
            worker.start()
            workers.append(worker)
            senders.append(sender)
        return workers, senders

    def _start_instance_workers(self: Any, queue: Any, ctx: Any) -> tuple[list[Any], list[Any]]:
        return start_workers(self, self._instance_worker, queue, ctx)

    def _start_batch_workers(self: Any, queue: Any, ctx: Any) -> tuple[list[Any], list[Any]]:
        return start_workers(self, self._batch_worker, queue, ctx)

    loader._start_instance_workers = _start_instance_workers
    loader._start_batch_workers = _start_batch_workers


def end_distributed_workers_cleanly(train: Module) -> None:
    """
    Symptom: distributed training on CPUs ends, after everything has been written, with `process 1 terminated with
    signal SIGABRT` in about 3 of 100 runs; with NCCL torch warns that the process group was not destroyed.

    Cause: AllenNLP does not destroy the group, and a thread of gloo may still run when the C++ library is torn
    down at the end of the process (seen with torch 2.13 alone, and also with the group destroyed). So a spawned
    worker that has finished runs Python's exit functions and then exits without that tear-down.
    """
    original = train._train_worker

    # The workers find the function by its name, so it must keep it.
    @functools.wraps(original)
    def _train_worker(*args: Any, **kwargs: Any) -> Any:
        import torch.distributed

        result = original(*args, **kwargs)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
            if multiprocessing.parent_process() is not None:
                atexit._run_exitfuncs()
                os._exit(0)
        return result

    train._train_worker = _train_worker


def refuse_evaluation_after_distributed_training(train: Module) -> None:
    """
    Symptom: distributed training with `evaluate_on_test` ends with `Connection closed by peer` after the last epoch,
    without metrics and archive.

    Cause: only the first worker evaluates, but metrics are summed over all of them; AllenNLP 2.10.1. The error is now
    raised before the training instead of after it.
    """
    original = train.train_model

    @functools.wraps(original)
    def train_model(params: Any, *args: Any, **kwargs: Any) -> Any:
        from allennlp.common.checks import ConfigurationError

        if params.get("distributed") is not None and params.get("evaluate_on_test", False):
            raise ConfigurationError(
                "evaluate_on_test must be false in distributed training, where AllenNLP 2.10.1 cannot evaluate, but is "
                "true. Remedy: run `allennlp evaluate` with the archive and the test file afterwards"
            )
        return original(params, *args, **kwargs)

    train.train_model = train_model
