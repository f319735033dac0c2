"""
What each task takes and gives: a predictor per task, for JSON lines, and `TrainedTask`, for plain texts and results.
"""

from elmo_tasks.predictors.coref import CorefPredictor
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.predictors.pairs import SnliPredictor, SquadPredictor
from elmo_tasks.predictors.sentence import (
    NerPredictor,
    PosPredictor,
    SentencePredictor,
    SstPredictor,
    TaggingPredictor,
)
from elmo_tasks.predictors.srl import SrlPredictor
from elmo_tasks.predictors.trained_task import TrainedTask

__all__ = ["CorefPredictor", "JsonLinesPredictor", "NerPredictor", "PosPredictor", "SentencePredictor"]
__all__ += ["SnliPredictor", "SquadPredictor", "SrlPredictor", "SstPredictor", "TaggingPredictor", "TrainedTask"]
