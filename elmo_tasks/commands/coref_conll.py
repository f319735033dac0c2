"""`allennlp elmo-coref-conll`: predictions of coreference in CoNLL's columns."""

import argparse
import json
from collections.abc import Set
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.data.dataset_readers.coref_reader import document_lines, read_documents
from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.printable import printable

__all__ = ["CorefConll"]

_Key = tuple[str, int]
"""Name and part of a document."""


@Subcommand.register("elmo-coref-conll")
class CorefConll(Subcommand):
    """
    Writes the predictions of `allennlp predict --use-dataset-reader` for documents in CoNLL's columns, for the
    reference scorer.

    Registered as a `Subcommand` with name "elmo-coref-conll".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write predictions of coreference in CoNLL's columns, for the reference scorer."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument(
            "predictions", type=Path, help="JSON lines of `allennlp predict --use-dataset-reader`, of an 'elmo_coref'"
        )
        subparser.add_argument("output", type=Path, help="where to write the columns")
        subparser.add_argument(
            "--gold", type=Path, help="the file that was predicted from: each of its documents must have a prediction"
        )
        subparser.add_argument("--force", action="store_true", help="overwrite a file that is there")
        subparser.set_defaults(func=_write)
        return subparser


def _write(arguments: argparse.Namespace) -> None:
    if arguments.output.is_file() and not arguments.force:
        raise FileExistsError(f"{arguments.output} exists: give --force to overwrite it")
    check_not_input(arguments.output, arguments.predictions, *filter(None, [arguments.gold]))
    documents = _documents(arguments.predictions)
    if arguments.gold is not None:
        _check_complete(documents.keys(), arguments.predictions, arguments.gold)
    with atomic_file(arguments.output) as file:
        lines = (f"{line}\n" for document in documents.values() for line in document)
        file.write_text("".join(lines), encoding="utf-8")
    print(printable(f"wrote {len(documents)} documents to {arguments.output}"))


def _documents(path: Path) -> dict[_Key, list[str]]:
    """
    The lines of each document, by its name and part.

    # Raises

    `ValueError`
        If a line is not a prediction, or is of a document that has another; the message names file and line.
    """
    documents: dict[_Key, list[str]] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            prediction = json.loads(line)
            name, part, sentences, clusters = (
                prediction[k] for k in ("document_name", "part", "sentences", "clusters")
            )
            if not isinstance(part, int) or not all(isinstance(words, list) for words in sentences):
                raise TypeError("'part' must be a number, and 'sentences' lists of words")
            lines = list(document_lines(name, part, sentences, clusters))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{where}: a prediction must have the name of its document, 'part', 'sentences' and 'clusters', as "
                f"`allennlp predict --use-dataset-reader` writes them, but is {line!r:.100} ({error!r})"
            ) from None
        if (name, part) in documents:
            raise ValueError(f"{where}: a document must have one prediction, but part {part} of {name!r} has another")
        documents[name, part] = lines
    if not documents:
        raise ValueError(f"{path} must hold at least one prediction, but holds none")
    return documents


def _check_complete(found: Set[_Key], predictions: Path, gold: Path) -> None:
    wanted = {(document.name, document.part) for document in read_documents(str(gold))}
    for file, lacks in ((predictions, wanted - found), (gold, found - wanted)):
        if lacks:
            name, part = min(lacks)
            raise ValueError(
                f"{file} must hold the same documents as {gold if file is predictions else predictions}, but lacks "
                f"{len(lacks)}, part {part} of {name!r} among them: predict again"
            )
