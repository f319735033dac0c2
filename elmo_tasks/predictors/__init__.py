"""One file a task where allennlp_models has no predictor that fits."""

from elmo_tasks.predictors.coref import CorefPredictor
from elmo_tasks.predictors.ner import NerPredictor
from elmo_tasks.predictors.pos import PosPredictor
from elmo_tasks.predictors.snli import SnliPredictor
from elmo_tasks.predictors.squad import SquadPredictor
from elmo_tasks.predictors.srl import SrlPredictor
from elmo_tasks.predictors.sst import SstPredictor

__all__ = [
    "CorefPredictor",
    "NerPredictor",
    "PosPredictor",
    "SnliPredictor",
    "SquadPredictor",
    "SrlPredictor",
    "SstPredictor",
]
