"""Students: task models that learn from a teacher's predictions, and biLMs that learn from a transformer's vectors."""

from elmo_tasks.distillation.data import DistilledDataLoader
from elmo_tasks.distillation.language_model import DistilledLanguageModel
from elmo_tasks.distillation.predictor import SoftLabelPredictor

__all__ = ["DistilledDataLoader", "DistilledLanguageModel", "SoftLabelPredictor"]
