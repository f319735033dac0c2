"""What is said of models and runs, and the paper's intrinsic evaluations."""

from elmo_tasks.analysis.compare import compare
from elmo_tasks.analysis.disambiguation import AnsweredSet, WordSenses, scores_of, table_of
from elmo_tasks.analysis.first_senses import FirstSenses, wordnet_index
from elmo_tasks.analysis.neighbor_builder import build_index
from elmo_tasks.analysis.neighbor_index import Neighbor, NeighborIndex
from elmo_tasks.analysis.run_scores import run_scores
from elmo_tasks.analysis.sense_vectors import SenseVectors, instance_vectors
from elmo_tasks.analysis.sentence_likelihood import LanguageModel, SentenceLikelihood, summary
from elmo_tasks.analysis.static_vectors import StaticVectors
from elmo_tasks.analysis.wsd_score import WsdScore

__all__ = [
    "AnsweredSet",
    "FirstSenses",
    "LanguageModel",
    "Neighbor",
    "NeighborIndex",
    "SenseVectors",
    "SentenceLikelihood",
    "StaticVectors",
    "WordSenses",
    "WsdScore",
    "build_index",
    "compare",
    "instance_vectors",
    "run_scores",
    "scores_of",
    "summary",
    "table_of",
    "wordnet_index",
]
