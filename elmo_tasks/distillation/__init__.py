"""Students that learn from a teacher's predictions for unlabelled texts: `allennlp predict`, then `allennlp train`."""

from elmo_tasks.distillation.data import DistilledDataLoader
from elmo_tasks.distillation.predictor import SoftLabelPredictor

__all__ = ["DistilledDataLoader", "SoftLabelPredictor"]
