"""
Predictors: one for all models of single sentences, and one for each task with a different line format; and
`TrainedTask`, which takes and returns plain texts.
"""

from elmo_tasks.predictors.coref import CorefPredictor
from elmo_tasks.predictors.sentence import SentencePredictor
from elmo_tasks.predictors.snli import SnliPredictor
from elmo_tasks.predictors.squad import SquadPredictor
from elmo_tasks.predictors.srl import SrlPredictor
from elmo_tasks.predictors.trained_task import TrainedTask

__all__ = ["CorefPredictor", "SentencePredictor", "SnliPredictor", "SquadPredictor", "SrlPredictor", "TrainedTask"]
