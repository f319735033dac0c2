"""Metrics, callbacks, checkpointer, optimizer, moving average and learning rate schedule."""

from elmo_tasks.training.callbacks import LearnedMixCallback, PerplexityBeforeCallback
from elmo_tasks.training.frozen_once_checkpointer import FrozenOnceCheckpointer
from elmo_tasks.training.metrics import CorefScores, Perplexity, SpanF1, SrlF1
from elmo_tasks.training.optimization import FusedAdam, LinearWithShortWarmup, RecoverableMovingAverage, StaircaseDecay

__all__ = ["CorefScores", "FrozenOnceCheckpointer", "FusedAdam", "LearnedMixCallback"]
__all__ += ["LinearWithShortWarmup", "Perplexity", "PerplexityBeforeCallback"]
__all__ += ["RecoverableMovingAverage", "SpanF1", "SrlF1", "StaircaseDecay"]
