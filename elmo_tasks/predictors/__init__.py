"""
What each task takes and gives: a predictor per task, for JSON lines, and `TrainedTask`, for plain
texts and results.

The classes are imported on first use, because `results` and `trained_models` are also for programs
that do not load AllenNLP.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tasks.predictors.coref import CorefPredictor
    from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
    from elmo_tasks.predictors.ner import NerPredictor
    from elmo_tasks.predictors.pos import PosPredictor
    from elmo_tasks.predictors.sentence_predictor import SentencePredictor, TaggingPredictor
    from elmo_tasks.predictors.snli import SnliPredictor
    from elmo_tasks.predictors.squad import SquadPredictor
    from elmo_tasks.predictors.srl import SrlPredictor
    from elmo_tasks.predictors.sst import SstPredictor
    from elmo_tasks.predictors.trained_task import TrainedTask

__all__ = [
    "CorefPredictor",
    "JsonLinesPredictor",
    "NerPredictor",
    "PosPredictor",
    "SentencePredictor",
    "SnliPredictor",
    "SquadPredictor",
    "SrlPredictor",
    "SstPredictor",
    "TaggingPredictor",
    "TrainedTask",
]

_MODULES = {
    "CorefPredictor": "coref",
    "JsonLinesPredictor": "json_lines_predictor",
    "NerPredictor": "ner",
    "PosPredictor": "pos",
    "SentencePredictor": "sentence_predictor",
    "SnliPredictor": "snli",
    "SquadPredictor": "squad",
    "SrlPredictor": "srl",
    "SstPredictor": "sst",
    "TaggingPredictor": "sentence_predictor",
    "TrainedTask": "trained_task",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
