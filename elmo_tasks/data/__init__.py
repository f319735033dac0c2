"""Token indexer, tokenizer, and the readers that allennlp_models lacks."""

from elmo_tasks.data.elmo_token_indexer import ElmoTokenIndexer
from elmo_tasks.data.ner_reader import NerReader
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer

__all__ = ["ElmoTokenIndexer", "NerReader", "SpacyBlankTokenizer"]
