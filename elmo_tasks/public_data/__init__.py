"""The public data of the paper's tasks: where its owners publish it, and how it is laid out here."""

from elmo_tasks.public_data.corpora import CORPORA, EXPLAINED, Corpus, PublicFile
from elmo_tasks.public_data.fetch import fetch

__all__ = ["CORPORA", "EXPLAINED", "Corpus", "PublicFile", "fetch"]
