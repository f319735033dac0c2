"""What the trainer plugs in."""

from elmo_tasks.training.frozen_once_checkpointer import FrozenOnceCheckpointer
from elmo_tasks.training.span_f1 import SpanF1

__all__ = ["FrozenOnceCheckpointer", "SpanF1"]
