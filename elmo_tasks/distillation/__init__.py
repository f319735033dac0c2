"""Distillation: a teacher labels much text, and a small student learns from its probabilities."""

from elmo_tasks.distillation.distillation_data_loader import DistillationDataLoader
from elmo_tasks.distillation.distilled_model import DistilledModel
from elmo_tasks.distillation.run import distill

__all__ = ["DistillationDataLoader", "DistilledModel", "distill"]
