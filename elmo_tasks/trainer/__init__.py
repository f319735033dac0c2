"""
Parts of AllenNLP's trainer: callbacks, checkpointer, optimizer, moving average and learning rate
schedules.
"""

from elmo_tasks.trainer.callbacks import LearnedMixCallback, PerplexityBeforeCallback
from elmo_tasks.trainer.frozen_once_checkpointer import FrozenOnceCheckpointer
from elmo_tasks.trainer.optimization import (
    FusedAdam,
    LinearWithShortWarmup,
    RecoverableMovingAverage,
    StaircaseDecay,
)
from elmo_tasks.trainer.random_states import RandomStateCallback

__all__ = [
    "FrozenOnceCheckpointer",
    "FusedAdam",
    "LearnedMixCallback",
    "LinearWithShortWarmup",
    "PerplexityBeforeCallback",
    "RandomStateCallback",
    "RecoverableMovingAverage",
    "StaircaseDecay",
]
