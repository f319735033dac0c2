"""Intrinsic evaluations of the paper: neighbours (Table 4), word senses (Table 5) and perplexity."""

from elmo_tasks.analysis.language_model import LanguageModel
from elmo_tasks.analysis.neighbors import NeighborIndex, build_index, marked_word
from elmo_tasks.analysis.static_vectors import StaticVectors
from elmo_tasks.analysis.word_senses import WordSenses

__all__ = ["LanguageModel", "NeighborIndex", "StaticVectors", "WordSenses", "build_index", "marked_word"]
