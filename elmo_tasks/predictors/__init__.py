"""Predictors: one for all models of single sentences, and one for each task with a different line format."""

from elmo_tasks.predictors.coref import CorefPredictor
from elmo_tasks.predictors.sentence import SentencePredictor
from elmo_tasks.predictors.snli import SnliPredictor
from elmo_tasks.predictors.squad import SquadPredictor
from elmo_tasks.predictors.srl import SrlPredictor

__all__ = ["CorefPredictor", "SentencePredictor", "SnliPredictor", "SquadPredictor", "SrlPredictor"]
