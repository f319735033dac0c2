"""`allennlp elmo-coref-conll`: coreference predictions in CoNLL columns."""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.data.dataset_readers.coref_reader import document_lines
from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.json_files import json_lines
from elmo_tasks.files.text_lines import located

__all__ = ["CorefConll"]


@Subcommand.register("elmo-coref-conll")
class CorefConll(Subcommand):
    """Write coreference predictions in CoNLL columns, for the reference scorer."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=self.__doc__, help=self.__doc__)
        subparser.add_argument("predictions", type=Path, help="JSON lines of `allennlp predict --use-dataset-reader`")
        subparser.add_argument("output", type=Path, help="where to write the columns")
        subparser.set_defaults(func=_write)
        return subparser


def _write(arguments: argparse.Namespace) -> None:
    check_not_input(arguments.output, arguments.predictions)
    keys = ("document_name", "part", "sentences", "clusters")
    columns: list[str] = []
    for number, prediction in json_lines(arguments.predictions):
        with located(arguments.predictions, number):
            columns += document_lines(*map(prediction.__getitem__, keys))
    with atomic_file(arguments.output) as file:
        file.write_text("".join(f"{line}\n" for line in columns), encoding="utf-8")
    print(f"wrote {columns.count('#end document')} documents to {arguments.output}")
