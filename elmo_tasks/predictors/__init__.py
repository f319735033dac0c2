"""One file a task where allennlp_models has no predictor that fits."""

from elmo_tasks.predictors.ner import NerPredictor

__all__ = ["NerPredictor"]
