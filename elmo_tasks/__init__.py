"""
ELMo, deep contextualized word representations (Peters et al. 2018): vectors without AllenNLP,
trained models, and an AllenNLP plugin.

Importing this package loads neither torch nor AllenNLP nor scikit-learn: the classes below are
imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elmo_tasks.version import __version__

if TYPE_CHECKING:
    from elmo_tasks.predictors.trained_task import TrainedTask
    from elmo_tasks.vectors.elmo import Elmo
    from elmo_tasks.vectors.legacy_embedder import ElmoEmbedder
    from elmo_tasks.vectors.sklearn_vectorizer import ElmoVectorizer

__all__ = ["Elmo", "ElmoEmbedder", "ElmoVectorizer", "TrainedTask", "__version__"]

_MODULES = {
    "Elmo": "elmo_tasks.vectors.elmo",
    "ElmoEmbedder": "elmo_tasks.vectors.legacy_embedder",
    "ElmoVectorizer": "elmo_tasks.vectors.sklearn_vectorizer",
    "TrainedTask": "elmo_tasks.predictors.trained_task",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from elmo_tasks.files.extras import needs

    with needs("sklearn" if name == "ElmoVectorizer" else "allennlp"):
        if name == "TrainedTask":
            # Before AllenNLP, also where torch has not imported it
            # (`TORCH_DEVICE_BACKEND_AUTOLOAD=0`).
            import_module("allennlp_today")
        return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
