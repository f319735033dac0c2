"""
A callback that kills a run once, like a power failure, and a function that trains in a process to
be killed.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import torch
from allennlp.common.plugins import import_plugins
from allennlp.training.callbacks import TrainerCallback

# A process that uses a GPU cannot be forked. A spawned process spends most of a short run on
# imports.
START_METHOD = "spawn" if torch.cuda.is_available() else "fork"


def exit_code_of(train: Callable[..., object], *arguments: Any) -> int | None:
    """
    Trains in a new process and returns its exit code, which is negative if a signal killed it.
    """
    context = multiprocessing.get_context(START_METHOD)
    process = context.Process(target=_train, args=(train, arguments))
    process.start()
    process.join(300)
    return process.exitcode


def _train(train: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    import_plugins()
    train(*arguments)


@TrainerCallback.register("kill_once")
class KillOnce(TrainerCallback):
    """
    Kills the process at the end of `epoch`, or of its batch number `batch` (from 1), before the
    checkpoint is written, unless the file `marker` exists.
    """

    def __init__(
        self, serialization_dir: str, marker: str, epoch: int, batch: Optional[int] = None
    ) -> None:
        super().__init__(serialization_dir)
        self._marker = Path(marker)
        self._epoch = epoch
        self._batch = batch

    def on_batch(
        self,
        trainer: Any,
        batch_inputs: Any,
        batch_outputs: Any,
        batch_metrics: Any,
        epoch: int,
        batch_number: int,
        is_training: bool,
        **kwargs: Any,
    ) -> None:
        if is_training:
            self._kill_at(epoch, batch_number)

    def on_epoch(
        self, trainer: Any, metrics: Any, epoch: int, is_primary: bool = True, **kwargs: Any
    ) -> None:
        self._kill_at(epoch, None)

    def _kill_at(self, epoch: int, batch: int | None) -> None:
        is_there = epoch == self._epoch and batch == self._batch
        if is_there and not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
