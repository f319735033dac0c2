"""Callbacks of the trainer."""

from elmo_tasks.training.callbacks.learned_mix import LearnedMixCallback
from elmo_tasks.training.callbacks.perplexity_before import PerplexityBeforeCallback

__all__ = ["LearnedMixCallback", "PerplexityBeforeCallback"]
