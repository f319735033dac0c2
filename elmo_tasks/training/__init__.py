"""What the trainer plugs in."""

from elmo_tasks.training.coref_scores import CorefScores
from elmo_tasks.training.frozen_once_checkpointer import FrozenOnceCheckpointer
from elmo_tasks.training.moving_average import RecoverableMovingAverage
from elmo_tasks.training.perplexity import Perplexity
from elmo_tasks.training.perplexity_before_callback import PerplexityBeforeCallback
from elmo_tasks.training.random_state_callback import RandomStateCallback
from elmo_tasks.training.span_f1 import SpanF1
from elmo_tasks.training.squad_metric import SquadEmF1
from elmo_tasks.training.srl_f1 import SrlF1
from elmo_tasks.training.staircase_decay import StaircaseDecay

__all__ = [
    "CorefScores",
    "FrozenOnceCheckpointer",
    "Perplexity",
    "PerplexityBeforeCallback",
    "RandomStateCallback",
    "RecoverableMovingAverage",
    "SpanF1",
    "SquadEmF1",
    "SrlF1",
    "StaircaseDecay",
]
