"""`allennlp elmo-neighbors`: the nearest neighbours of a word in its sentence."""

import argparse
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.analysis import FoundNeighbors, Neighbor, find_neighbors, index_text, position_of
from elmo_tasks.commands.endings import endings_in_one_line
from elmo_tasks.environment import config_variables
from elmo_tasks.printable import printable
from elmo_tasks.tokenization import blank_tokenizer

__all__ = ["Neighbors"]

# Words that are printed on each side of a neighbour.
_CONTEXT = 10


@Subcommand.register("elmo-neighbors")
class Neighbors(Subcommand):
    """
    Indexes the words of a text in their sentences, and prints those that are nearest to a word in a sentence: Table 4
    of the paper.

    Registered as a `Subcommand` with name "elmo-neighbors".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Print the nearest neighbours of a word in its sentence, from a text that was indexed before."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        actions = subparser.add_subparsers(title="actions", required=True, metavar="")

        help_of_index = "Embed a text into a new index; the same command resumes one that was interrupted."
        index = actions.add_parser("index", description=help_of_index, help=help_of_index)
        index.add_argument("corpus", help="tokenised text, a sentence a line: a file, a folder or a pattern")
        index.add_argument("folder", type=Path, help="the index to be made")
        index.add_argument(
            "--bilm", help="name of a biLM or its folder (default: ELMO_TASKS_BILM, or the one that ships)"
        )
        index.add_argument(
            "--layer", type=_layer, default="top", help="0, 1, ..., top (the default) or mix, their mean"
        )
        index.add_argument("--dtype", choices=("float16", "float32"), default="float16")
        index.add_argument("--precision", choices=("float32", "tf32", "bf16"), default="float32")
        index.add_argument("--batch-tokens", type=int, default=4096, help="words computed at once")
        index.set_defaults(func=_index)

        help_of_query = "Print the neighbours of a word in a sentence."
        query = actions.add_parser("query", description=help_of_query, help=help_of_query)
        query.add_argument("folder", type=Path, help="an index")
        query.add_argument("sentence", help="a sentence, which is split into words by spaCy's rules")
        query.add_argument("--word", required=True, help="the word of the sentence")
        query.add_argument("--position", type=int, help="its place, counted from 0, if it is there several times")
        query.add_argument("-k", type=int, default=10, help="how many neighbours (default: 10)")
        query.add_argument("--glove", type=Path, help="file of GloVe vectors, whose neighbours are printed too")
        query.add_argument("--bilm", help="the biLM of the index, if it has been moved")
        query.add_argument("--tokenized", action="store_true", help="split the sentence at its spaces")
        query.add_argument("--output-file", type=Path, help="the neighbours as JSON")
        query.set_defaults(func=_query)
        return subparser


def _layer(value: str) -> Any:
    return int(value) if value.isdecimal() else value


def _index(arguments: argparse.Namespace) -> None:
    with endings_in_one_line("elmo-neighbors", resume="the same command resumes with the next sentence"):
        index = index_text(
            arguments.corpus,
            arguments.folder,
            arguments.bilm or config_variables()["ELMO_TASKS_BILM"],
            layer=arguments.layer,
            dtype=arguments.dtype,
            precision=arguments.precision,
            batch_tokens=arguments.batch_tokens,
        )
        print(f"indexed {len(index):,} words of {index.n_sentences:,} sentences in {index.n_bytes / 1e6:,.1f} MB")


def _query(arguments: argparse.Namespace) -> None:
    with endings_in_one_line("elmo-neighbors"):
        words = arguments.sentence.split() if arguments.tokenized else blank_tokenizer()(arguments.sentence)
        position = position_of(arguments.word, words, arguments.position)
        found = find_neighbors(
            arguments.folder, words, position, bilm=arguments.bilm, k=arguments.k, static=arguments.glove
        )
        if arguments.output_file is not None:
            found.write(arguments.output_file)
        _print(found, arguments.glove)


def _print(found: FoundNeighbors, glove: Path | None) -> None:
    print(_marked(Neighbor(found.words, found.position, 1.0)))
    titles, columns = [], []
    if glove is not None and found.static_neighbors is None:
        print(printable(f"{found.words[found.position]!r} has no vector in {glove}"))
    elif glove is not None and found.static_neighbors:
        titles.append(printable(glove.name))
        columns.append([f"{cosine:.2f}  {printable(word)}" for word, cosine in found.static_neighbors])
    titles.append("in context")
    columns.append([f"{neighbor.similarity:.2f}  {_marked(neighbor)}" for neighbor in found.neighbors])
    widths = [max(map(len, [title, *column])) for title, column in zip(titles, columns, strict=True)]
    print("\n" + "    ".join(f"{title:{width}}" for title, width in zip(titles, widths, strict=True)).rstrip())
    for row in range(max(map(len, columns))):
        cells = [column[row] if row < len(column) else "" for column in columns]
        print("    ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip())


def _marked(neighbor: Neighbor) -> str:
    """The word in brackets, with some of its sentence."""
    words = [f"[{word}]" if place == neighbor.position else word for place, word in enumerate(neighbor.words)]
    first, last = max(0, neighbor.position - _CONTEXT), neighbor.position + _CONTEXT + 1
    before, after = "... " if first else "", " ..." if last < len(words) else ""
    return printable(before + " ".join(words[first:last]) + after)
