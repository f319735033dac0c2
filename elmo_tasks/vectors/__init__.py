"""Vectors without AllenNLP: `Elmo`, a transformer for scikit-learn and a component for spaCy."""

from elmo_tasks.vectors.elmo import Elmo

__all__ = ["Elmo"]
