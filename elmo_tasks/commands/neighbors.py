"""
`allennlp elmo-neighbors`: the nearest neighbours of words in their sentences, Table 4 of the paper.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.commands.arguments import add_device, layer
from elmo_tasks.configs import config_variables
from elmo_tasks.data import LmText
from elmo_tasks.files.jobs import at_least_one
from elmo_tasks.paper.neighbors import (
    Neighbor,
    NeighborIndex,
    Query,
    build_index,
    marked_text,
    marked_word,
)
from elmo_tasks.paper.static_vectors import StaticVectors
from elmo_tasks.text import in_nfc
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["Neighbors"]


@Subcommand.register("elmo-neighbors")
class Neighbors(Subcommand):
    """Find the words of an indexed text that are nearest to a word in its sentence."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(
            self.name, description=self.__doc__, help=self.__doc__
        )
        commands = subparser.add_subparsers(required=True, metavar="command")
        index = commands.add_parser(
            "index", help="embed a text; the same command resumes after an interruption"
        )
        index.add_argument(
            "text", help="tokenised text, one sentence per line: a file, a folder or a pattern"
        )
        index.add_argument("folder", type=Path, help="new folder of the index")
        index.add_argument(
            "--layers", nargs="+", type=layer, default=["top"], help="top, mix or numbers"
        )
        index.set_defaults(func=_index)
        query = commands.add_parser(
            "query", help="print the neighbours as JSON, one line per query"
        )
        query.add_argument("folder", type=Path, help="folder of the index")
        query.add_argument(
            "sentence",
            help="such as 'They went to the [river] .', with one word in brackets; -: stdin",
        )
        query.add_argument("-k", type=at_least_one, default=10, help="how many neighbours")
        query.add_argument("--layer", type=layer, help="layer of the index (default: the last one)")
        query.add_argument(
            "--same-word", action="store_true", help="only other occurrences of the word"
        )
        query.add_argument(
            "--glove", type=Path, help="add the neighbours of the static vectors in this file"
        )
        query.set_defaults(func=_query)
        for command in (index, query):
            command.add_argument(
                "--bilm", help="name or folder of a biLM (default: ELMO_TASKS_BILM, or small-open)"
            )
            add_device(command)
        return subparser


def _index(arguments: argparse.Namespace) -> None:
    bilm = arguments.bilm or config_variables()["ELMO_TASKS_BILM"]
    about = {"bilm": str(bilm), "text": arguments.text}
    text = LmText(arguments.text)
    elmo = Elmo.from_pretrained(bilm, device=arguments.device)
    index = build_index(elmo, text, arguments.folder, layers=arguments.layers, about=about)
    print(f"indexed {len(index):,} words in {arguments.folder}")


def _query(arguments: argparse.Namespace) -> None:
    # Not the biLM that the index names: an untrusted index must not choose files to read.
    bilm = arguments.bilm or config_variables()["ELMO_TASKS_BILM"]
    elmo = Elmo.from_pretrained(bilm, device=arguments.device)
    index = NeighborIndex(arguments.folder, elmo)
    k = arguments.k
    static = None
    if arguments.glove:
        static = StaticVectors(arguments.glove)
    lines = sys.stdin if arguments.sentence == "-" else [arguments.sentence]
    queries = []
    for line in lines:
        if line.strip():
            queries.append(marked_word(in_nfc(line)))
    neighbors_of_queries = index.search(
        queries, k, layer=arguments.layer, same_word=arguments.same_word
    )
    for query, neighbors in zip(queries, neighbors_of_queries, strict=True):
        result = _sentence(query)
        result["neighbors"] = list(map(_neighbor, neighbors))
        if static is not None:
            result["static"] = [neighbor for neighbor, _ in static.nearest(query.word, k)]
        print(json.dumps(result, ensure_ascii=False))


def _neighbor(neighbor: Neighbor) -> dict[str, Any]:
    return {**_sentence(neighbor), "cosine": round(neighbor.similarity, 4)}


def _sentence(query: Query | Neighbor) -> dict[str, Any]:
    return {"word": query.words[query.position], "sentence": marked_text(query)}
