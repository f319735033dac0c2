"""Metrics, which sum over the workers of distributed training."""

from elmo_tasks.training.metrics.coref_scores import CorefScores
from elmo_tasks.training.metrics.perplexity import Perplexity
from elmo_tasks.training.metrics.span_f1 import SpanF1
from elmo_tasks.training.metrics.srl_f1 import SrlF1

__all__ = ["CorefScores", "Perplexity", "SpanF1", "SrlF1"]
