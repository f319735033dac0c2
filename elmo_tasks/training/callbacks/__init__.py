"""Callbacks of the trainer."""

from elmo_tasks.training.callbacks.learned_mix import LearnedMixCallback
from elmo_tasks.training.callbacks.perplexity_before import PerplexityBeforeCallback
from elmo_tasks.training.callbacks.random_state import RandomStateCallback

__all__ = ["LearnedMixCallback", "PerplexityBeforeCallback", "RandomStateCallback"]
