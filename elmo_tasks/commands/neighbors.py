"""`allennlp elmo-neighbors`: the nearest neighbours of a word in its sentence."""

import argparse
import json
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.analysis import Neighbor, NeighborIndex, StaticVectors, build_index
from elmo_tasks.commands.errors import errors_in_one_line
from elmo_tasks.data import LmText
from elmo_tasks.environment import config_variables
from elmo_tasks.tokenization import blank_tokenizer
from elmo_tasks.vectors.download import file_digest
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.pretrained import pretrained_files

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

        help_of_index = "Embed a text into a new index; the same call goes on with one that was broken off."
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
        query.add_argument("--position", type=int, help="its place, from 0 on, if it is there several times")
        query.add_argument("-k", type=int, default=10, help="how many neighbours (default: 10)")
        query.add_argument("--glove", type=Path, help="file of GloVe vectors, whose neighbours are printed beside")
        query.add_argument("--bilm", help="the biLM of the index, if it has been moved")
        query.add_argument("--tokenized", action="store_true", help="split the sentence at its spaces")
        query.add_argument("--output-file", type=Path, help="the neighbours as JSON")
        query.set_defaults(func=_query)
        return subparser


def _layer(value: str) -> Any:
    return int(value) if value.isdecimal() else value


def _index(arguments: argparse.Namespace) -> None:
    with errors_in_one_line("elmo-neighbors"):
        bilm = arguments.bilm or config_variables()["ELMO_TASKS_BILM"]
        about = {"bilm": str(bilm), "weights": file_digest(pretrained_files(bilm)[1]), "corpus": arguments.corpus}
        index = build_index(
            Elmo.from_pretrained(bilm, precision=arguments.precision),
            LmText(arguments.corpus),
            arguments.folder,
            layer=arguments.layer,
            dtype=arguments.dtype,
            about=about,
            batch_tokens=arguments.batch_tokens,
        )
    print(f"indexed {len(index):,} words of {index.n_sentences:,} sentences in {index.n_bytes / 1e6:,.1f} MB")


def _query(arguments: argparse.Namespace) -> None:
    with errors_in_one_line("elmo-neighbors"):
        index = NeighborIndex(arguments.folder)
        words = arguments.sentence.split() if arguments.tokenized else blank_tokenizer()(arguments.sentence)
        position = _position(words, arguments.word, arguments.position)
        bilm = _bilm(arguments, index)
        layer: Any = index.about["layer"]
        (vectors,) = Elmo.from_pretrained(bilm).embed([words], layers=layer, progress=False)
        found = index.search(vectors[position], arguments.k, without=words)
        static = None
        if arguments.glove is not None:
            static = StaticVectors.from_file(arguments.glove).nearest(arguments.word, arguments.k)
        if arguments.output_file is not None:
            content = {
                "words": words,
                "position": position,
                "layer": layer,
                "neighbors": [neighbor._asdict() for neighbor in found],
                "static_neighbors": static,
            }
            arguments.output_file.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    _print(arguments, Neighbor(words, position, 1.0), found, static)


def _bilm(arguments: argparse.Namespace, index: NeighborIndex) -> str:
    """The biLM of a query. Only an index that the command made says which one it is of."""
    bilm = arguments.bilm or index.about.get("bilm")
    if bilm is None:
        raise ValueError(f"'{arguments.folder}' does not say which biLM it was made with: name it with --bilm")
    weights = index.about.get("weights")
    if weights is not None and file_digest(pretrained_files(bilm)[1]) != weights:
        raise ValueError(
            f"a query must have the biLM of its index, but '{bilm}' has other weights now: name the one that "
            f"'{arguments.folder}' was made with (--bilm), or make the index anew"
        )
    return str(bilm)


def _position(words: list[str], word: str, position: int | None) -> int:
    places = [place for place, found in enumerate(words) if found == word]
    if position is None and len(places) == 1:
        return places[0]
    if position is not None and position in places:
        return position
    numbered = " ".join(f"{place}:{found}" for place, found in enumerate(words))
    if position is not None:
        raise ValueError(f"--position must be a place of {word!r}, but is {position}; the words are {numbered}")
    remedy = "choose one with --position" if places else "name one of them with --word"
    raise ValueError(f"{word!r} must be in the sentence once, but is {len(places)} times: {remedy}: {numbered}")


def _print(
    arguments: argparse.Namespace,
    query: Neighbor,
    found: list[Neighbor],
    static: list[tuple[str, float]] | None,
) -> None:
    print(_marked(query))
    if arguments.glove is not None and static is None:
        print(f"{arguments.word!r} has no vector in {arguments.glove}")
    titles = ([f"{arguments.glove.name}"] if static else []) + ["in context"]
    columns = [[f"{cosine:.2f}  {word}" for word, cosine in static]] if static else []
    columns.append([f"{neighbor.similarity:.2f}  {_marked(neighbor)}" for neighbor in found])
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
    return before + " ".join(words[first:last]) + after
