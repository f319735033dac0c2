"""`allennlp elmo-perplexity`: the perplexity of a text under a biLM."""

import argparse
import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any, TextIO

from allennlp.commands.subcommand import Subcommand
from tqdm import tqdm

from elmo_tasks.commands.arguments import add_device, add_precision
from elmo_tasks.data import LmText
from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.paper.perplexity import LanguageModel, SentenceLikelihood, summary

__all__ = ["PerplexityOfText"]


@Subcommand.register("elmo-perplexity")
class PerplexityOfText(Subcommand):
    """Print the perplexity of a text, and write the log-likelihood of its lines."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(
            self.name, description=self.__doc__, help=self.__doc__
        )
        subparser.add_argument(
            "bilm", help="name, or folder with options.json, weights.hdf5 and vocab.txt"
        )
        subparser.add_argument(
            "text", help="tokenised text, one sentence per line: a file, a folder or a pattern"
        )
        subparser.add_argument(
            "--output-file", type=Path, help="write the log-likelihoods (nats) as JSON lines"
        )
        add_precision(subparser, "float32")
        subparser.add_argument(
            "--tokenize", choices=["letters"], help="split lines or FASTA into letters"
        )
        add_device(subparser)
        subparser.set_defaults(func=_print_perplexity)
        return subparser


def _print_perplexity(arguments: argparse.Namespace) -> None:
    model = LanguageModel(arguments.bilm, device=arguments.device, precision=arguments.precision)
    text = LmText(arguments.text, letters=arguments.tokenize == "letters")
    output = arguments.output_file
    if output is not None:
        check_not_input(output, *text.files, *model.files)
    with ExitStack() as stack:
        if output is None:
            scores = model.score(text)
        else:
            file = stack.enter_context(
                open(stack.enter_context(atomic_file(output)), "w", encoding="utf-8")
            )
            scores = _written(model, text, file)
        found = summary(tqdm(scores, unit="sentence", disable=None))
    for name, value in found.items():
        print(f"{name:20} {value:12,.4f}" if isinstance(value, float) else f"{name:20} {value:12,}")


def _written(model: LanguageModel, text: LmText, file: TextIO) -> Iterator[SentenceLikelihood]:
    """The scores of all sentences, with a row in the file for each line of the text."""
    lines, read_ahead = tee(text.lines())
    scores = model.score(chain.from_iterable(sentences for *_, sentences in read_ahead))
    for name, number, sentences in lines:
        of_line = list(islice(scores, len(sentences)))
        row: dict[str, Any] = (
            {"line": number} if len(text.files) == 1 else {"file": name, "line": number}
        )
        row["words"] = list(chain.from_iterable(sentences))
        row |= {
            key: sum(getattr(each, key) for each in of_line)
            for key in ("forward", "backward", "n_unknown")
        }
        file.write(json.dumps(row | {"n_sentences": len(of_line)}, ensure_ascii=False) + "\n")
        yield from of_line
