"""Parts of AllenNLP's trainer: callbacks, checkpointer, optimizer, moving average and learning rate schedules."""

from elmo_tasks.trainer.callbacks import LearnedMixCallback, PerplexityBeforeCallback, RandomStateCallback
from elmo_tasks.trainer.frozen_once_checkpointer import FrozenOnceCheckpointer
from elmo_tasks.trainer.optimization import FusedAdam, LinearWithShortWarmup, RecoverableMovingAverage, StaircaseDecay

__all__ = ["FrozenOnceCheckpointer", "FusedAdam", "LearnedMixCallback", "LinearWithShortWarmup"]
__all__ += ["PerplexityBeforeCallback", "RandomStateCallback", "RecoverableMovingAverage", "StaircaseDecay"]
