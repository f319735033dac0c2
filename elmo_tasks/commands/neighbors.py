"""`allennlp elmo-neighbors`: the nearest neighbours of a word in its sentence."""

import argparse
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.analysis import (
    FoundNeighbors,
    Neighbor,
    NeighborFinder,
    NeighborIndex,
    Query,
    build_graph,
    index_text,
    marked_word,
    position_of,
)
from elmo_tasks.environment import config_variables
from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.printable import one_line, printable, printable_lines
from elmo_tasks.progress import progress_bar
from elmo_tasks.tokenization import blank_tokenizer
from elmo_tasks.unicode_text import add_nfc_argument

__all__ = ["Neighbors"]

_NAME = "elmo-neighbors"
# Words that are printed on each side of a neighbour.
_CONTEXT = 10
# Queries that are searched for at once.
_AT_ONCE = 64


@Subcommand.register(_NAME)
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
        index.add_argument(
            "corpus", help="tokenised text, a sentence a line, or CoNLL-U (.conllu): a file, a folder or a pattern"
        )
        index.add_argument("folder", type=Path, help="the index to be made")
        index.add_argument(
            "--bilm", help="name of a biLM or its folder (default: ELMO_TASKS_BILM, or the one that ships)"
        )
        index.add_argument(
            "--layer",
            type=_layer,
            nargs="+",
            default=["top"],
            help="one or more of 0, 1, ..., top (the default) and mix, their mean",
        )
        index.add_argument(
            "--dtype", choices=("float16", "float32", "int8"), default="float16", help="of the vectors on disk"
        )
        index.add_argument("--precision", choices=("float32", "bf16"), default="float32")
        index.add_argument("--batch-tokens", type=int, default=4096, help="words computed at once")
        add_nfc_argument(index)
        index.set_defaults(func=_index)

        help_of_graph = "Add what --approximate needs to an index, and measure how many neighbours it finds."
        graph = actions.add_parser("graph", description=help_of_graph, help=help_of_graph)
        graph.add_argument("folder", type=Path, help="an index")
        graph.add_argument("--layer", type=_layer, help="a layer of the index (default: the last)")
        graph.set_defaults(func=_graph)

        help_of_query = "Print the neighbours of a word in a sentence."
        query = actions.add_parser("query", description=help_of_query, help=help_of_query)
        query.add_argument("folder", type=Path, help="an index")
        query.add_argument(
            "sentence", help="a sentence, which is split into words by spaCy's rules, with the word in [brackets]"
        )
        query.add_argument("--word", help="the word of the sentence, if it is not in brackets")
        query.add_argument("--position", type=int, help="its place, counted from 0, if it is there several times")
        _add_options(query)
        query.add_argument("--json", action="store_true", help="print the neighbours as JSON")
        query.add_argument("--output-file", type=Path, help="the neighbours as JSON")
        query.set_defaults(func=_query)

        help_of_batch = "Write the neighbours of many words as lines of JSON."
        batch = actions.add_parser("batch", description=help_of_batch, help=help_of_batch)
        batch.add_argument("folder", type=Path, help="an index")
        batch.add_argument("queries", type=Path, help="a sentence a line, with a word in [brackets]")
        batch.add_argument("--output-file", type=Path, required=True, help="a line of JSON for each query")
        _add_options(batch)
        batch.set_defaults(func=_batch)

        help_of_shell = "Read queries from the keyboard, or lines of another program, and answer each at once."
        shell = actions.add_parser("shell", description=help_of_shell, help=help_of_shell)
        shell.add_argument("folder", type=Path, help="an index")
        _add_options(shell)
        shell.add_argument("--json", action="store_true", help="answer each query with a line of JSON")
        shell.set_defaults(func=_shell)
        return subparser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", type=int, default=10, help="how many neighbours (default: 10)")
    parser.add_argument("--layer", type=_layer, help="a layer of the index (default: the last)")
    parser.add_argument(
        "--filter",
        type=_filter,
        action="append",
        default=[],
        metavar="TAG=VALUE",
        help="only neighbours of a lemma or a part of speech, as lemma=play or pos=NOUN, of an index of CoNLL-U",
    )
    parser.add_argument(
        "--approximate", action="store_true", help="search faster and miss some, by what the action graph has built"
    )
    parser.add_argument("--glove", type=Path, help="file of GloVe vectors, whose neighbours are printed too")
    parser.add_argument("--bilm", help="the biLM of the index, if it has been moved")
    parser.add_argument("--tokenized", action="store_true", help="split sentences at their spaces")


def _layer(value: str) -> Any:
    return int(value) if value.isdecimal() else value


def _filter(value: str) -> tuple[str, str]:
    tag, _, wanted = value.partition("=")
    if not tag or not wanted:
        raise argparse.ArgumentTypeError(f"{value!r} must be TAG=VALUE, as lemma=play or pos=NOUN")
    return tag, wanted


def _index(arguments: argparse.Namespace) -> None:
    bilm = arguments.bilm or config_variables()["ELMO_TASKS_BILM"]
    index = index_text(
        arguments.corpus,
        arguments.folder,
        bilm,
        layer=arguments.layer,
        dtype=arguments.dtype,
        precision=arguments.precision,
        batch_tokens=arguments.batch_tokens,
        nfc=arguments.nfc,
    )
    size = f"{index.n_bytes / 1e6:,.1f} MB"
    print(f"indexed {len(index):,} words of {index.n_sentences:,} sentences in {size}, with the biLM {bilm}")


def _graph(arguments: argparse.Namespace) -> None:
    index = NeighborIndex(arguments.folder)
    graph = build_graph(index, arguments.layer)
    print(f"built a graph of {len(index):,} words in {graph.n_bytes / 1e6:,.1f} MB; {_recall(graph.recall)}")


def _query(arguments: argparse.Namespace) -> None:
    finder = _finder(arguments)
    if arguments.output_file is not None:
        check_not_input(arguments.output_file, *finder.files)
    found = _find(finder, [_asked(finder, arguments)], arguments)[0]
    if arguments.output_file is not None:
        with atomic_file(arguments.output_file) as file:
            file.write_text(found.to_json(indent=2) + "\n", encoding="utf-8")
    _show(found, arguments)


def _batch(arguments: argparse.Namespace) -> None:
    check_not_input(arguments.output_file, arguments.queries)
    lines = list(numbered_lines(arguments.queries))
    finder, tokenizer, queries = _finder(arguments), _tokenizer(arguments), []
    check_not_input(arguments.output_file, *finder.files)
    for number, line in lines:
        try:
            if line.strip():
                queries.append(marked_word(finder.index.in_form(line), tokenizer))
        except ValueError as error:
            raise ValueError(f"{arguments.queries}, line {number}: {error}") from None
    if not queries:
        raise ValueError(f"{arguments.queries} must hold at least one query, a sentence a line, but holds none")
    with atomic_file(arguments.output_file) as path, open(path, "w", encoding="utf-8") as file:
        with progress_bar(len(queries), None, "queries") as advance:
            for start in range(0, len(queries), _AT_ONCE):
                found = _find(finder, queries[start : start + _AT_ONCE], arguments)
                file.writelines(f"{each.to_json()}\n" for each in found)
                advance(len(found))


def _shell(arguments: argparse.Namespace) -> None:
    finder, tokenizer = _finder(arguments), _tokenizer(arguments)
    if sys.stdin.isatty():
        print(f"{len(finder.index):,} words. A sentence with one word in [brackets]; Ctrl-D ends.")
    for line in _typed():
        try:
            query = marked_word(finder.index.in_form(_utf_8(line)), tokenizer)
            _show(_find(finder, [query], arguments)[0], arguments)
        except ValueError as error:
            print(json.dumps({"error": str(error)}, ensure_ascii=False) if arguments.json else one_line(error))
        sys.stdout.flush()


def _typed() -> Iterator[str]:
    """The lines of stdin that are not blank; on a terminal with a prompt."""
    if sys.stdin.isatty():
        # For its side effect: `input` then edits lines, and remembers them.
        import readline  # noqa: F401
    if isinstance(sys.stdin, io.TextIOWrapper):
        # A line of other bytes is an error of its own, and not of all that were read with it.
        sys.stdin.reconfigure(errors="surrogateescape")
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if line.strip():
            yield line


def _utf_8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"a query must be UTF-8, but is not: {error}") from None
    return text


def _asked(finder: NeighborFinder, arguments: argparse.Namespace) -> Query:
    tokenizer, sentence = _tokenizer(arguments), finder.index.in_form(_utf_8(arguments.sentence))
    if arguments.word is None:
        if arguments.position is not None:
            raise ValueError("--position is the place of --word: name the word, or put it in brackets")
        return marked_word(sentence, tokenizer)
    word = finder.index.in_form(_utf_8(arguments.word))
    if f"[{word}]" in sentence:
        raise ValueError(
            f"the word must be in brackets or named by --word, but {word!r} is both: omit --word; brackets of the "
            f"sentence itself are written as [ {word} ]"
        )
    words = tokenizer(sentence)
    return Query(words, position_of(word, words, arguments.position))


def _tokenizer(arguments: argparse.Namespace) -> Callable[[str], list[str]]:
    return str.split if arguments.tokenized else blank_tokenizer()


def _finder(arguments: argparse.Namespace) -> NeighborFinder:
    """With the settings checked, so that a shell says at its start what is wrong with them."""
    tags = [tag for tag, _ in arguments.filter]
    if twice := sorted({tag for tag in tags if tags.count(tag) > 1}):
        raise ValueError(f"--filter must name a tag once, but names {twice[0]} several times")
    finder = NeighborFinder(arguments.folder, bilm=arguments.bilm, static=arguments.glove)
    finder.check(k=arguments.k, layer=arguments.layer, where=dict(arguments.filter), approximate=arguments.approximate)
    return finder


def _find(finder: NeighborFinder, queries: list[Query], arguments: argparse.Namespace) -> list[FoundNeighbors]:
    return finder.find(
        queries,
        arguments.k,
        layer=arguments.layer,
        where=dict(arguments.filter),
        approximate=arguments.approximate,
    )


def _show(found: FoundNeighbors, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(printable_lines(found.to_json()))
    else:
        _print(found, arguments.glove)


def _print(found: FoundNeighbors, glove: Path | None) -> None:
    print(_marked(Neighbor(found.words, found.position, 1.0)))
    if found.recall is not None:
        print(_recall(found.recall))
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


def _recall(recall: float) -> str:
    return f"approximate: finds {100 * recall:.1f}% of the ten nearest words, as measured on this index"


def _marked(neighbor: Neighbor) -> str:
    """The word in brackets, with some of its sentence."""
    words = [f"[{word}]" if place == neighbor.position else word for place, word in enumerate(neighbor.words)]
    first, last = max(0, neighbor.position - _CONTEXT), neighbor.position + _CONTEXT + 1
    before, after = "... " if first else "", " ..." if last < len(words) else ""
    return printable(before + " ".join(words[first:last]) + after)
