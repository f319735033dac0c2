"""Callbacks of the trainer."""

from elmo_tasks.training.callbacks.perplexity_before import PerplexityBeforeCallback
from elmo_tasks.training.callbacks.random_state import RandomStateCallback

__all__ = ["PerplexityBeforeCallback", "RandomStateCallback"]
