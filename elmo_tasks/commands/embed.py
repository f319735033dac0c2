"""`python -m elmo_tasks embed`: the vectors of a corpus."""

import argparse
from dataclasses import fields
from typing import Any

from elmo_tasks.commands.arguments import (
    add_corpus_arguments,
    add_job_arguments,
    add_precision,
    layer,
)
from elmo_tasks.commands.printing import print_written
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from elmo_tasks.files.jobs import at_least_one

__all__ = ["DESCRIPTION", "add_arguments", "run"]

DESCRIPTION = (
    "Write the ELMo vectors of a corpus, with a sentence in each line or row, into a file."
)

_OPTIONS: dict[str, dict[str, Any]] = {
    "--bilm": {"help": "name, or folder with options.json and weights.hdf5"},
    "--layers": {"type": layer, "help": "mix, all, top, or a number"},
    "--weights": {
        "type": float,
        "nargs": "+",
        "help": "one per layer of the mix, before the softmax; default: all 0",
    },
    "--gamma": {"type": float, "help": "factor of the vectors"},
    "--pool": {
        "choices": ["mean", "max", "first-last"],
        "help": "write one vector per sentence instead of per word",
    },
    "--tokenize": {
        "help": "letters (of lines or FASTA), or spaCy's rules for en, de, ...; default: whitespace"
    },
    "--dtype": {"choices": ["float32", "float16"], "help": "type of the numbers in the output"},
    "--batch-tokens": {
        "type": at_least_one,
        "help": "words per batch; default: 4096, on a GPU 16384",
    },
    "--part-lines": {
        "type": at_least_one,
        "help": "lines per part; an interrupted job loses the parts in progress; default: 500",
    },
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_corpus_arguments(parser, text_column=EmbedOptions.text_column)
    outputs = ".h5 or .hdf5, .parquet, or a name that ends with / for a folder of Parquet files"
    parser.add_argument("output", help=f"to write: {outputs}")
    for option, settings in _OPTIONS.items():
        field_name = option.removeprefix("--").replace("-", "_")
        parser.add_argument(option, default=getattr(EmbedOptions, field_name), **settings)
    add_precision(parser, EmbedOptions.precision)
    add_job_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    values = {field.name: getattr(arguments, field.name) for field in fields(EmbedOptions)}
    if arguments.weights is not None:
        values["weights"] = tuple(arguments.weights)
    n_lines = embed_file(
        arguments.corpus,
        arguments.output,
        EmbedOptions(**values),
        force=arguments.force,
        workers=arguments.workers,
        ray=arguments.ray,
    )
    print_written(arguments.output, n_lines, "lines")
