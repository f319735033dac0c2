"""What is said of models and runs."""

from elmo_tasks.analysis.compare import compare

__all__ = ["compare"]
