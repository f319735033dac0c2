"""`allennlp elmo-perplexity`: the perplexity of a text under a biLM."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.analysis import LanguageModel, SentenceLikelihood, summary
from elmo_tasks.data import LmText
from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.progress import progress_bar
from elmo_tasks.unicode_text import add_nfc_argument

__all__ = ["PerplexityOfText"]

_MANY_UNKNOWN = 0.1


@Subcommand.register("elmo-perplexity")
class PerplexityOfText(Subcommand):
    """
    Prints the perplexity of a text over the whole vocabulary, and writes the log-likelihood of each sentence.

    Registered as a `Subcommand` with name "elmo-perplexity".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Print the perplexity of a text, and write the log-likelihood of its sentences."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument(
            "bilm", help="its name, or a folder with options.json, weights.hdf5 (with a softmax) and vocab.txt"
        )
        subparser.add_argument("text", help="tokenised text, a sentence a line: a file, a folder or a pattern")
        subparser.add_argument(
            "--output-file", type=Path, help="JSON lines: a sentence and its log-likelihoods, in nats"
        )
        add_nfc_argument(subparser)
        subparser.set_defaults(func=_print_perplexity)
        return subparser


def _print_perplexity(arguments: argparse.Namespace) -> None:
    model = LanguageModel(arguments.bilm)
    text = LmText(arguments.text, nfc=arguments.nfc)
    scores = _counted(model.score(text))
    if arguments.output_file is None:
        found = summary(scores)
    else:
        check_not_input(arguments.output_file, *text.files, *model.files)
        with atomic_file(arguments.output_file) as path, open(path, "w", encoding="utf-8") as file:
            found = summary(_written(scores, file))
    for name, value in found.items():
        print(f"{name:20} {value:12,.4f}" if isinstance(value, float) else f"{name:20} {value:12,}")
    if text.irregular:
        lines = ", ".join(f"{n:,} {what}" for what, n in sorted(text.irregular.items()))
        print(f"elmo-perplexity: not every line is one sentence: of the lines there are {lines}", file=sys.stderr)
    if found["unknown_share"] > _MANY_UNKNOWN:
        print(
            f"elmo-perplexity: {found['unknown_share']:.0%} of the words are not in the vocabulary. All of them "
            "count as one word, which is easy to predict: the perplexity flatters, and compares with none of "
            "another vocabulary",
            file=sys.stderr,
        )


def _counted(scores: Iterator[SentenceLikelihood]) -> Iterator[SentenceLikelihood]:
    with progress_bar(None, None, "sentences") as advance:
        for score in scores:
            advance(1)
            yield score


def _written(scores: Iterator[SentenceLikelihood], file: TextIO) -> Iterator[SentenceLikelihood]:
    for score in scores:
        file.write(json.dumps(asdict(score), ensure_ascii=False) + "\n")
        yield score
