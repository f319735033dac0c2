"""A callback that ends a training as a power failure would: at once, and once."""

import os
import signal
from pathlib import Path
from typing import Any

from allennlp.training.callbacks import TrainerCallback


@TrainerCallback.register("kill_once")
class KillOnce(TrainerCallback):
    """
    Kills the process at the end of `epoch`, before its checkpoint is written, unless the file `marker` is there.
    """

    def __init__(self, serialization_dir: str, marker: str, epoch: int) -> None:
        super().__init__(serialization_dir)
        self._marker = Path(marker)
        self._epoch = epoch

    def on_epoch(self, trainer: Any, metrics: Any, epoch: int, is_primary: bool = True, **kwargs: Any) -> None:
        if epoch == self._epoch and not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
