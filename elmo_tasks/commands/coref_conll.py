"""`allennlp elmo-coref-conll`: predictions of coreference in CoNLL's columns."""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["CorefConll"]


@Subcommand.register("elmo-coref-conll")
class CorefConll(Subcommand):
    """
    Writes the predictions of `allennlp predict --use-dataset-reader` for documents in CoNLL's columns, for the
    reference scorer.
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write predictions of coreference in CoNLL's columns, for the reference scorer."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("predictions", type=Path, help="JSON lines of `allennlp predict --use-dataset-reader`")
        subparser.add_argument("output", type=Path, help="where to write the columns")
        subparser.set_defaults(func=_write)
        return subparser


def _write(arguments: argparse.Namespace) -> None:
    check_not_input(arguments.output, arguments.predictions)
    documents = [json.loads(line) for _, line in numbered_lines(arguments.predictions) if line.strip()]
    with atomic_file(arguments.output) as file:
        file.write_text("".join(f"{line}\n" for each in documents for line in _lines(each)), encoding="utf-8")
    print(f"wrote {len(documents)} documents to {arguments.output}")


def _lines(prediction: dict[str, Any]) -> Iterator[str]:
    """A document in twelve columns, with tabs between them; unknown columns have placeholders."""
    name, part = prediction["document_name"], prediction["part"]
    brackets = _brackets(prediction["clusters"])
    yield f"#begin document ({name}); part {part:03d}"
    n_words = 0
    for words in prediction["sentences"]:
        for number, word in enumerate(words):
            coreference = "|".join(brackets.get(n_words, ["-"]))
            yield "\t".join([name, str(part), str(number), word, "XX", *"*----*", coreference])
            n_words += 1
        yield ""
    yield "#end document"


def _brackets(clusters: Iterable[Iterable[Sequence[int]]]) -> dict[int, list[str]]:
    """The brackets of each word that has any; those of inner mentions are inside."""
    begins: dict[int, list[tuple[int, str]]] = defaultdict(list)
    ends: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for number, cluster in enumerate(clusters):
        for start, end in cluster:
            begins[start].append((start - end, f"({number})" if start == end else f"({number}"))
            if start != end:
                ends[end].append((-start, f"{number})"))
    # Ends first: they belong to earlier mentions. Longer mentions begin before shorter ones, and end after them.
    return {
        word: [bracket for _, bracket in [*sorted(ends.get(word, [])), *sorted(begins.get(word, []))]]
        for word in {*begins, *ends}
    }
