"""Dataset readers, data loaders, token indexer, tokenizer and vocabulary."""

from elmo_tasks.data.data_loaders import LmDataLoader, LmWindowDataLoader
from elmo_tasks.data.dataset_readers import (
    CorefReader,
    LmReader,
    NerReader,
    PosReader,
    SnliReader,
    SquadReader,
    SrlReader,
    SstReader,
)
from elmo_tasks.data.elmo_token_indexer import ElmoTokenIndexer
from elmo_tasks.data.formats import LmText, WsdCorpus, WsdInstance, WsdSentence
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE, LmVocabulary
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer

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
