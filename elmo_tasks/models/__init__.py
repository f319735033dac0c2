"""One file a task."""

from elmo_tasks.models.ner import NerTagger

__all__ = ["NerTagger"]
