"""A callback that ends a training as a power failure would: at once, and once; and a process to be killed."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import torch
from allennlp.common.plugins import import_plugins
from allennlp.training.callbacks import TrainerCallback

# A process that uses a GPU cannot be forked. A spawned one spends most of a small training on imports.
START_METHOD = "spawn" if torch.cuda.is_available() else "fork"


def exit_code_of(train: Callable[..., object], *arguments: Any) -> int | None:
    """The exit code of a process of its own that trains; negative if a signal ended it."""
    process = multiprocessing.get_context(START_METHOD).Process(target=_train, args=(train, arguments))
    process.start()
    process.join(300)
    return process.exitcode


def _train(train: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    import_plugins()
    train(*arguments)


@TrainerCallback.register("kill_once")
class KillOnce(TrainerCallback):
    """
    Kills the process at the end of `epoch`, or of its batch number `batch` (from 1), before a checkpoint of it is
    written, unless the file `marker` is there.
    """

    def __init__(self, serialization_dir: str, marker: str, epoch: int, batch: Optional[int] = None) -> None:
        super().__init__(serialization_dir)
        self._marker = Path(marker)
        self._at = epoch, batch

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

    def on_epoch(self, trainer: Any, metrics: Any, epoch: int, is_primary: bool = True, **kwargs: Any) -> None:
        self._kill_at(epoch, None)

    def _kill_at(self, epoch: int, batch: int | None) -> None:
        if (epoch, batch) == self._at and not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
