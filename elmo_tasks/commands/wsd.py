"""`allennlp elmo-wsd`: word sense disambiguation, Table 5 of the paper."""

import argparse
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand
from tabulate import tabulate

from elmo_tasks.commands.arguments import add_device
from elmo_tasks.configs import config_variables
from elmo_tasks.files.json_files import write_json
from elmo_tasks.paper.word_senses import measure_senses

__all__ = ["DisambiguateWords"]


@Subcommand.register("elmo-wsd")
class DisambiguateWords(Subcommand):
    """Print the F1 of word sense disambiguation by nearest neighbour, for each layer of a biLM."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(
            self.name, description=self.__doc__, help=self.__doc__
        )
        add = subparser.add_argument
        add("--bilm", help="name or folder of a biLM (default: ELMO_TASKS_BILM, or small-open)")
        add(
            "--data",
            type=Path,
            help="folder with train/ and test/ (default: wsd/ in ELMO_TASKS_DATA)",
        )
        add(
            "--wordnet",
            type=Path,
            help="folder with index.sense of WordNet 3.0, for lemmas without training data",
        )
        add("--output-file", type=Path, help="write all numbers as JSON")
        add_device(subparser)
        subparser.set_defaults(func=_run)
        return subparser


def _run(arguments: argparse.Namespace) -> None:
    variables = config_variables()
    bilm = arguments.bilm or variables["ELMO_TASKS_BILM"]
    data = arguments.data or Path(variables["ELMO_TASKS_DATA"], "wsd")
    measured = measure_senses(bilm, data, wordnet=arguments.wordnet, device=arguments.device)
    table = []
    for name, scores_of_groups in measured["scores"].items():
        row: dict[str, Any] = {"F1": name}
        for group, score in scores_of_groups.items():
            row[group] = 100 * score["f1"]
        table.append(row)
    print(tabulate(table, headers="keys", floatfmt=".1f"))
    n_unanswered = sum(counts["unanswered"] for counts in measured["sets"].values())
    n_instances = measured["instances_of_training"]
    counted = f"{measured['senses']:,} senses of {n_instances:,} instances"
    print(f"{counted}; {n_unanswered:,} without an answer")
    if arguments.output_file is not None:
        write_json(arguments.output_file, measured)
