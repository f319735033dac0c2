"""
The files included in the package: training configs, sample data for each task, biLMs, and trained
models.
"""

from pathlib import Path

__all__ = ["DEFAULT_BILM", "FIXTURES", "MODELS", "PRETRAINED", "TRAINING_CONFIGS"]

_PACKAGE = Path(__file__).resolve().parents[1]


def _folder(name: str) -> Path:
    """Inside the package if it was installed from a wheel, next to the package in a checkout."""
    inside = _PACKAGE / name
    if inside.is_dir():
        return inside
    return _PACKAGE.parent / name


FIXTURES = _folder("fixtures")
MODELS = _PACKAGE.parent / "models"
"""Trained models of the tasks, only in a checkout."""
PRETRAINED = _folder("pretrained")
TRAINING_CONFIGS = _folder("training_configs")

DEFAULT_BILM = "small-open"
"""The biLM that is used if none is named."""
