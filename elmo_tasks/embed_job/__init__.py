"""The embed job: vectors of a text in a file, without AllenNLP; in parts, so that an interrupted job can resume."""

from elmo_tasks.embed_job.cli import DESCRIPTION, add_arguments, embed
from elmo_tasks.embed_job.job import EmbedReport, embed_file
from elmo_tasks.embed_job.options import EmbedOptions

__all__ = ["DESCRIPTION", "EmbedOptions", "EmbedReport", "add_arguments", "embed", "embed_file"]
