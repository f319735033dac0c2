"""The files that the package includes: the training configs, the small data of each task, and the biLMs."""

from pathlib import Path

__all__ = ["DEFAULT_BILM", "FIXTURES", "PRETRAINED", "TRAINING_CONFIGS"]

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """In the package where it was installed from a wheel, next to it in a checkout."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


FIXTURES = _folder("fixtures")
PRETRAINED = _folder("pretrained")
TRAINING_CONFIGS = _folder("training_configs")

DEFAULT_BILM = "small-open"
"""The biLM that everything uses if none is named."""
