"""Subcommands of `allennlp`."""

from elmo_tasks.commands.coref_conll import CorefConll
from elmo_tasks.commands.data import PublicData
from elmo_tasks.commands.demo import ShowDemo
from elmo_tasks.commands.elmo import FormerElmo
from elmo_tasks.commands.embed import Embed
from elmo_tasks.commands.export import Export
from elmo_tasks.commands.neighbors import Neighbors
from elmo_tasks.commands.perplexity import PerplexityOfText
from elmo_tasks.commands.tables import Tables
from elmo_tasks.commands.wsd import DisambiguateWords

__all__ = [
    "CorefConll",
    "DisambiguateWords",
    "Embed",
    "Export",
    "FormerElmo",
    "Neighbors",
    "PerplexityOfText",
    "PublicData",
    "ShowDemo",
    "Tables",
]
