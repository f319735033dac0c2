"""The models, one for each task, and several of one task as one."""

from elmo_tasks.models.bilm_language_model import BilmLanguageModel
from elmo_tasks.models.coref import CorefResolver
from elmo_tasks.models.ensemble import Ensemble, write_ensemble
from elmo_tasks.models.ner import NerTagger
from elmo_tasks.models.pos import PosClassifier
from elmo_tasks.models.snli import Esim
from elmo_tasks.models.squad import SquadModel
from elmo_tasks.models.srl import SemanticRoleLabeler
from elmo_tasks.models.sst import BiattentiveClassifier

__all__ = ["BiattentiveClassifier", "BilmLanguageModel", "CorefResolver", "Ensemble", "Esim"]
__all__ += ["NerTagger", "PosClassifier", "SemanticRoleLabeler", "SquadModel", "write_ensemble"]
