"""Metrics that sum over the workers of distributed training."""

from elmo_tasks.metrics.coref_scores import CorefScores
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.metrics.spans import SpanF1, SrlF1, TagF1

__all__ = ["CorefScores", "Perplexity", "SpanF1", "SrlF1", "TagF1"]
