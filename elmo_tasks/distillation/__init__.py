"""Students that learn from what a teacher predicts for unlabelled texts: `allennlp predict`, then `allennlp train`."""

from elmo_tasks.distillation.data import DistilledDataLoader
from elmo_tasks.distillation.predictor import SoftLabelPredictor

__all__ = ["DistilledDataLoader", "SoftLabelPredictor"]
