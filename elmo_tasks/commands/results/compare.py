"""`allennlp elmo-compare`: the scores of several runs, next to each other."""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.analysis import compare
from elmo_tasks.printable import printable_lines

__all__ = ["Compare"]


@Subcommand.register("elmo-compare")
class Compare(Subcommand):
    """
    Prints the best validation score and the test score of finished runs, in percent, and how far each is from the
    first.

    Registered as a `Subcommand` with name "elmo-compare".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Print the scores of finished runs next to each other, in percent."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("runs", nargs="+", type=Path, help="serialization directories, the baseline first")
        subparser.add_argument(
            "--metric", default="f1-measure-overall", help="the metric, without best_validation_ or test_"
        )
        subparser.set_defaults(func=_print)
        return subparser


def _print(arguments: argparse.Namespace) -> None:
    print(printable_lines(compare(arguments.runs, arguments.metric)))
