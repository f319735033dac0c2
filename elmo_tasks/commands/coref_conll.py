"""`allennlp elmo-coref-conll`: predictions of coreference in CoNLL's columns."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.commands.endings import endings_in_one_line
from elmo_tasks.commands.outputs import output_file
from elmo_tasks.data.formats.coref_conll import document_lines
from elmo_tasks.printable import printable
from elmo_tasks.text_lines import numbered_lines

__all__ = ["CorefConll"]


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
        subparser.set_defaults(func=_write)
        return subparser


def _write(arguments: argparse.Namespace) -> None:
    with endings_in_one_line("elmo-coref-conll"):
        with output_file(arguments.output) as file:
            file.write_text("".join(f"{line}\n" for line in _lines(arguments.predictions)), encoding="utf-8")
        print(printable(f"wrote {arguments.output}"))


def _lines(path: Path) -> Iterator[str]:
    for number, line in numbered_lines(str(path)):
        if not line.strip():
            continue
        try:
            prediction = json.loads(line)
            name, part, sentences, clusters = (prediction[k] for k in ("document", "part", "sentences", "clusters"))
            if not name:
                raise ValueError("no name")
            yield from document_lines(name, part, sentences, clusters)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path}, line {number}: a prediction must have the name of its document, 'part', 'sentences' and "
                f"'clusters', as `allennlp predict --use-dataset-reader` writes them, but is {line!r:.100} ({error!r})"
            ) from None
