"""Writes what trained tasks find in a corpus: `job` runs the tasks, `outputs` writes the files."""

from elmo_tasks.annotate.job import DESCRIPTION, add_arguments, annotate, annotate_file

__all__ = ["DESCRIPTION", "add_arguments", "annotate", "annotate_file"]
