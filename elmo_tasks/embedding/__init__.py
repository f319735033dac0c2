"""Vectors of a whole text into a file: without AllenNLP, in parts, so that a job that is broken off can go on."""

from elmo_tasks.embedding.arguments import DESCRIPTION, add_arguments, embed
from elmo_tasks.embedding.job import EmbedReport, embed_file
from elmo_tasks.embedding.options import EmbedOptions

__all__ = ["DESCRIPTION", "EmbedOptions", "EmbedReport", "add_arguments", "embed", "embed_file"]
