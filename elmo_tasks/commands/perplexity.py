"""`allennlp elmo-perplexity`: the perplexity of a text under a biLM."""

import argparse
import json
from collections.abc import Iterable, Iterator
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
    if output is None:
        measures = summary(_with_bar(model.score(text)))
    else:
        check_not_input(output, *text.files, *model.files)
        with atomic_file(output) as temporary, open(temporary, "w", encoding="utf-8") as file:
            measures = summary(_with_bar(_written(model, text, file)))
    for name, value in measures.items():
        number_format = "12,.4f" if isinstance(value, float) else "12,"
        print(f"{name:20} {value:{number_format}}")


def _with_bar(scores: Iterator[SentenceLikelihood]) -> Iterable[SentenceLikelihood]:
    return tqdm(scores, unit="sentence", disable=None)


def _written(model: LanguageModel, text: LmText, file: TextIO) -> Iterator[SentenceLikelihood]:
    """The scores of all sentences, with a row in the file for each line of the text."""
    lines, lines_to_score = tee(text.lines())
    scores = model.score(_sentences_in(lines_to_score))
    for name, number, sentences in lines:
        scores_of_line = list(islice(scores, len(sentences)))
        row: dict[str, Any] = {}
        if len(text.files) > 1:
            row["file"] = name
        row["line"] = number
        row["words"] = list(chain.from_iterable(sentences))
        row["forward"] = sum(score.forward for score in scores_of_line)
        row["backward"] = sum(score.backward for score in scores_of_line)
        row["n_unknown"] = sum(score.n_unknown for score in scores_of_line)
        row["n_sentences"] = len(sentences)
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
        yield from scores_of_line


def _sentences_in(lines: Iterable[tuple[str, int, list[list[str]]]]) -> Iterator[list[str]]:
    for _, _, sentences in lines:
        yield from sentences
