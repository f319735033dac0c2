"""`python -m elmo_tasks embed`: the vectors of a corpus."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from elmo_tasks.commands.arguments import (
    add_corpus_arguments,
    add_job_arguments,
    add_precision,
    layer,
)
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from elmo_tasks.files.jobs import at_least_one

__all__ = ["DESCRIPTION", "add_arguments", "run"]

DESCRIPTION = (
    "Write the ELMo vectors of a corpus, with a sentence in each line or row, into a file."
)

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "bilm": {"help": "name, or folder with options.json and weights.hdf5"},
    "layers": {"type": layer, "help": "mix, all, top, or a number"},
    "weights": {
        "type": float,
        "nargs": "+",
        "help": "one per layer of the mix, before the softmax; default: all 0",
    },
    "gamma": {"type": float, "help": "factor of the vectors"},
    "pool": {
        "choices": ["mean", "max", "first-last"],
        "help": "write one vector per sentence instead of per word",
    },
    "tokenize": {
        "help": "letters (of lines or FASTA), or spaCy's rules for en, de, ...; default: whitespace"
    },
    "dtype": {"choices": ["float32", "float16"], "help": "type of the numbers in the output"},
    "batch_tokens": {
        "type": at_least_one,
        "help": "words per batch; default: 4096, on a GPU 16384",
    },
    "part_lines": {
        "type": at_least_one,
        "help": "lines per part; an interrupted job loses the parts in progress; default: 500",
    },
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_corpus_arguments(parser, text_column=EmbedOptions.text_column)
    add(
        "output",
        help="to write: .h5 or .hdf5, .parquet, or a name that ends with / for a folder of Parquet files",
    )
    for name, of_argument in _ARGUMENTS.items():
        add(f"--{name.replace('_', '-')}", default=getattr(EmbedOptions, name), **of_argument)
    add_precision(parser, EmbedOptions.precision)
    add_job_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    options = {option.name: getattr(arguments, option.name) for option in fields(EmbedOptions)}
    options["weights"] = arguments.weights and tuple(arguments.weights)
    others = {name: getattr(arguments, name) for name in ("force", "workers", "ray")}
    n_lines = embed_file(arguments.corpus, arguments.output, EmbedOptions(**options), **others)
    output = Path(arguments.output)
    n_bytes = sum(
        file.stat().st_size for file in (output.iterdir() if output.is_dir() else [output])
    )
    print(f"wrote {arguments.output}: {n_lines:,} lines, {n_bytes:,} bytes")
