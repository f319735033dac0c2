"""Arguments that several commands have, of `python -m elmo_tasks` and of `allennlp elmo-...`."""

import argparse
from typing import Any

from elmo_tasks.files.jobs import at_least_one

__all__ = [
    "add_corpus_arguments",
    "add_device",
    "add_job_arguments",
    "add_precision",
    "add_trained_tasks",
    "layer",
    "trust_of",
]


def layer(text: str) -> str | int:
    """The number of a layer, or `mix`, `all` or `top`."""
    if text.isdecimal():
        return int(text)
    return text


def add_precision(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    # Not from `Bilm`, because torch would be imported for `--help`.
    choices = ("float32", "bf16", "int8", "auto")
    explained = "of the biLM's products; auto: the fastest (default: float32)"
    parser.add_argument("--precision", choices=choices, help=explained)
    # Not as an argument above, because AllenNLP would add it to the help again.
    parser.set_defaults(precision=default)


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="cpu, cuda, cuda:1, ...; default: a GPU if there is one")


def add_trained_tasks(parser: argparse.ArgumentParser) -> None:
    """Adds options of `TrainedTask`. `trust_of` reads the first two."""
    add = parser.add_argument
    add(
        "--include-package",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="with your own classes; see --trust",
    )
    add(
        "--trust",
        action="store_true",
        help="the models may name any class or file, as with --include-package",
    )
    threshold = "the lowest probability of a name (default: 0)"
    add("--threshold", type=float, default=0.0, help=threshold)
    add_precision(parser)


def trust_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """
    The options `packages` and `trusted` of `TrainedTask`. With --include-package, models are
    trusted.
    """
    packages = tuple(arguments.include_package)
    return {"packages": packages, "trusted": arguments.trust or bool(packages)}


def add_corpus_arguments(
    parser: argparse.ArgumentParser,
    text_column: str | tuple[str, ...] = (),
) -> None:
    from elmo_tasks.corpora.corpus import FORMATS

    add = parser.add_argument
    files = "lines of text, .jsonl, .json, .csv, .tsv, .xlsx, .parquet, or a folder; .gz, .xz, .bz2"
    add("corpus", help=files)
    texts = "column with the texts (default: text), or for pairs two names: question,context"
    add("--text-column", default=text_column, metavar="NAME", help=texts)
    names = "column with the names of the texts (default: id, else numbers)"
    add("--id-column", metavar="NAME", help=names)
    kept = "columns to copy to the output; 'all': all others"
    add("--keep", default=(), metavar="NAME,...", help=kept)
    glob = "the files of a folder, such as '*.txt' (default: all but hidden ones)"
    add("--glob", default="*", help=glob)
    formats = "text: a text per line; csv: tables with tabs and quotation marks, too"
    add("--input-format", choices=FORMATS, help=f"{formats} (default: by name and content)")
    sheet = "name or number of a sheet of .xlsx (default: the first that is not hidden)"
    add("--sheet", metavar="NAME", help=sheet)
    header = "line of .csv and .tsv, or row of .xlsx, with the names of the columns; 0: none"
    add("--header-row", type=int, metavar="N", help=header)


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_device(parser)
    workers = "processes, each with its own models; default: one, on Ray per core"
    add("--workers", type=at_least_one, metavar="N", help=workers)
    add(
        "--ray",
        metavar="ADDRESS",
        help="run the workers on a Ray cluster; all machines need the same folders",
    )
    add(
        "--force",
        action="store_true",
        help="replace an existing output or the parts of an interrupted job",
    )
