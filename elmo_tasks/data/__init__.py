"""Token indexer, tokenizer, and the readers that allennlp_models lacks; the data side of the biLM's training."""

from elmo_tasks.data.coref_reader import CorefReader
from elmo_tasks.data.elmo_token_indexer import ElmoTokenIndexer
from elmo_tasks.data.lm_data_loader import LmDataLoader
from elmo_tasks.data.lm_reader import LmReader
from elmo_tasks.data.lm_text import LmText
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE, LmVocabulary
from elmo_tasks.data.lm_window_data_loader import LmWindowDataLoader
from elmo_tasks.data.ner_reader import NerReader
from elmo_tasks.data.pos_reader import PosReader
from elmo_tasks.data.snli_reader import SnliReader
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.data.squad_reader import SquadReader
from elmo_tasks.data.srl_reader import SrlReader
from elmo_tasks.data.sst_reader import SstReader
from elmo_tasks.data.wsd_corpus import WsdCorpus, WsdInstance, WsdSentence

__all__ = [
    "LM_NAMESPACE",
    "CorefReader",
    "ElmoTokenIndexer",
    "LmDataLoader",
    "LmReader",
    "LmText",
    "LmVocabulary",
    "LmWindowDataLoader",
    "NerReader",
    "PosReader",
    "SnliReader",
    "SpacyBlankTokenizer",
    "SquadReader",
    "SrlReader",
    "SstReader",
    "WsdCorpus",
    "WsdInstance",
    "WsdSentence",
]
