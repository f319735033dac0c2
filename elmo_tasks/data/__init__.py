"""Dataset readers, data loader, token indexers, tokenizer and vocabulary."""

from elmo_tasks.data.dataset_readers.coref_reader import CorefReader
from elmo_tasks.data.dataset_readers.lm_reader import LmReader, LmText
from elmo_tasks.data.dataset_readers.ner_reader import NerReader
from elmo_tasks.data.dataset_readers.pos_reader import PosReader
from elmo_tasks.data.dataset_readers.snli_reader import SnliReader
from elmo_tasks.data.dataset_readers.squad_reader import SquadReader
from elmo_tasks.data.dataset_readers.srl_reader import SrlReader
from elmo_tasks.data.dataset_readers.sst_reader import SstReader
from elmo_tasks.data.lm_data_loader import LmDataLoader
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE, LmVocabulary
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.data.token_indexers import (
    ElmoTokenIndexer,
    TransformerIndexer,
    WordCharactersIndexer,
)

__all__ = [
    "LM_NAMESPACE",
    "CorefReader",
    "ElmoTokenIndexer",
    "LmDataLoader",
    "LmReader",
    "LmText",
    "LmVocabulary",
    "NerReader",
    "PosReader",
    "SnliReader",
    "SpacyBlankTokenizer",
    "SquadReader",
    "SrlReader",
    "SstReader",
    "TransformerIndexer",
    "WordCharactersIndexer",
]
