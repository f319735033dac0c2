"""`python -m elmo_tasks annotate`: what trained tasks find in a corpus."""

import argparse

from elmo_tasks.commands.arguments import (
    add_corpus_arguments,
    add_job_arguments,
    add_trained_tasks,
    trust_of,
)
from elmo_tasks.commands.printing import print_written
from elmo_tasks.corpora.annotate import annotate_file
from elmo_tasks.corpora.outputs import OUTPUTS
from elmo_tasks.files.jobs import at_least_one

__all__ = ["DESCRIPTION", "add_arguments", "run"]

DESCRIPTION = (
    "Write what trained tasks find in a corpus: names, roles, chains, ... with their places in "
    "each text."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    models = "names of models (ner, srl, coref, ...), archives, or folders of runs"
    add("task", nargs="+", help=models)
    add_corpus_arguments(parser)
    add("output", help=f"a name that ends with {', '.join(OUTPUTS)} (a folder for brat)")
    language = "spaCy's code, for splitting text into words (default: en)"
    add("--language", default="en", help=language)
    part_texts = (
        "texts per part; an interrupted job loses only the parts in progress (default: 200)"
    )
    add("--part-texts", type=at_least_one, default=200, help=part_texts)
    add_trained_tasks(parser)
    add_job_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    options = trust_of(arguments)
    for name in annotate_file.__kwdefaults__ or ():
        if name in arguments:
            options[name] = getattr(arguments, name)
    n_texts = annotate_file(arguments.task, arguments.corpus, arguments.output, **options)
    print_written(arguments.output, n_texts, "texts")
