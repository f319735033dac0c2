"""`allennlp elmo-perplexity`: the perplexity of a text under a biLM."""

import argparse
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO, get_args

from allennlp.commands.subcommand import Subcommand
from tqdm import tqdm

from elmo_tasks.analysis.language_model import LanguageModel, SentenceLikelihood, summary
from elmo_tasks.bilm.kernels.precision import Precision
from elmo_tasks.data import LmText
from elmo_tasks.files.atomic_files import atomic_file, check_not_input

__all__ = ["PerplexityOfText"]


@Subcommand.register("elmo-perplexity")
class PerplexityOfText(Subcommand):
    """Print the perplexity of a text, and write the log-likelihood of its sentences."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=self.__doc__, help=self.__doc__)
        subparser.add_argument("bilm", help="name, or folder with options.json, weights.hdf5 and vocab.txt")
        subparser.add_argument("text", help="tokenised text, one sentence per line: a file, a folder or a pattern")
        subparser.add_argument("--output-file", type=Path, help="JSON lines: sentences, log-likelihoods in nats")
        subparser.add_argument(
            "--precision", choices=get_args(Precision), default="float32", help="of the biLM's products"
        )
        subparser.add_argument("--tokenize", choices=["letters"], help="split lines or FASTA into letters")
        subparser.set_defaults(func=_print_perplexity)
        return subparser


def _print_perplexity(arguments: argparse.Namespace) -> None:
    model = LanguageModel(arguments.bilm, precision=arguments.precision)
    text = LmText(arguments.text, letters=arguments.tokenize == "letters")
    output = arguments.output_file
    if output is not None:
        check_not_input(output, *text.files, *model.files)
    scores: Iterator[SentenceLikelihood] = tqdm(model.score(text), unit="sentence", disable=None)
    with ExitStack() as stack:
        if output is not None:
            file = stack.enter_context(open(stack.enter_context(atomic_file(output)), "w", encoding="utf-8"))
            scores = _written(scores, file)
        found = summary(scores)
    for name, value in found.items():
        print(f"{name:20} {value:12,.4f}" if isinstance(value, float) else f"{name:20} {value:12,}")


def _written(scores: Iterator[SentenceLikelihood], file: TextIO) -> Iterator[SentenceLikelihood]:
    for score in scores:
        file.write(json.dumps(score._asdict(), ensure_ascii=False) + "\n")
        yield score
