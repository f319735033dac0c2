"""Intrinsic evaluations of the paper, likelihoods, and scores of runs."""

from elmo_tasks.analysis.disambiguation import AnsweredSet, WordSenses, scores_of, table_of
from elmo_tasks.analysis.first_senses import FirstSenses, wordnet_index
from elmo_tasks.analysis.neighbors.builder import build_index
from elmo_tasks.analysis.neighbors.graph import Graph
from elmo_tasks.analysis.neighbors.graph_builder import build_graph
from elmo_tasks.analysis.neighbors.identity import check_bilm
from elmo_tasks.analysis.neighbors.index import Neighbor, NeighborIndex
from elmo_tasks.analysis.neighbors.query import (
    FoundNeighbors,
    NeighborFinder,
    Query,
    find_neighbors,
    marked_word,
    position_of,
)
from elmo_tasks.analysis.neighbors.static_vectors import StaticVectors
from elmo_tasks.analysis.neighbors.text import TaggedSentence, read_text
from elmo_tasks.analysis.neighbors.text_index import index_text
from elmo_tasks.analysis.sense_vectors import SenseVectors, instance_vectors
from elmo_tasks.analysis.sentence_likelihood import LanguageModel, SentenceLikelihood, WordLikelihoods, summary
from elmo_tasks.analysis.word_occurrences import Occurrence, Occurrences, occurrences_of
from elmo_tasks.analysis.wsd_measurement import WORD_SENSES, WsdMeasurement
from elmo_tasks.analysis.wsd_score import WsdScore

__all__ = [
    "WORD_SENSES",
    "AnsweredSet",
    "FirstSenses",
    "FoundNeighbors",
    "Graph",
    "LanguageModel",
    "Neighbor",
    "NeighborFinder",
    "NeighborIndex",
    "Occurrence",
    "Occurrences",
    "Query",
    "SenseVectors",
    "SentenceLikelihood",
    "StaticVectors",
    "TaggedSentence",
    "WordLikelihoods",
    "WordSenses",
    "WsdMeasurement",
    "WsdScore",
    "build_graph",
    "build_index",
    "check_bilm",
    "find_neighbors",
    "index_text",
    "instance_vectors",
    "marked_word",
    "occurrences_of",
    "position_of",
    "read_text",
    "scores_of",
    "summary",
    "table_of",
    "wordnet_index",
]
