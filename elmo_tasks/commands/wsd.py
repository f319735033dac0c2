"""`allennlp elmo-wsd`: word sense disambiguation, Table 5 of the paper."""

import argparse
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand
from tabulate import tabulate

from elmo_tasks.commands.arguments import add_device
from elmo_tasks.configs import config_variables
from elmo_tasks.files.json_files import write_json
from elmo_tasks.paper.word_senses import WordSenses, first_senses_of_wordnet, scores_of
from elmo_tasks.paper.wsd_corpus import WsdCorpus
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["DisambiguateWords"]

_MOST_FREQUENT = (
    "the training data, no WordNet: the most frequent sense there, and none for other lemmas"
)


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
    (training,) = WsdCorpus.find(data / "train")
    first_senses = None
    if arguments.wordnet:
        first_senses = first_senses_of_wordnet(arguments.wordnet)
    elmo = Elmo.from_pretrained(bilm, device=arguments.device)
    senses = WordSenses(elmo, training, first_senses)
    answered_sets = [senses.answer(corpus) for corpus in WsdCorpus.find(data / "test")]
    scores = scores_of(answered_sets)
    table = []
    for name, scores_of_groups in scores.items():
        row: dict[str, Any] = {"F1": name}
        for group, score in scores_of_groups.items():
            row[group] = 100 * score["f1"]
        table.append(row)
    print(tabulate(table, headers="keys", floatfmt=".1f"))
    n_senses = len(senses.senses)
    n_unanswered = sum(answered.n_unanswered for answered in answered_sets)
    counts = f"{n_senses:,} senses of {senses.n_instances:,} instances"
    print(f"{counts}; {n_unanswered:,} without an answer")
    if arguments.output_file is None:
        return
    counts_of_sets = {}
    for answered in answered_sets:
        counts_of_sets[answered.name] = {
            "lemma_not_in_training": answered.n_unseen,
            "unanswered": answered.n_unanswered,
        }
    numbers = {
        "bilm": Path(bilm).resolve().name,
        "training": training.name,
        "wordnet": first_senses is not None,
        "distance": "cosine",
        "instances_of_training": senses.n_instances,
        "senses": n_senses,
        "first_senses": _MOST_FREQUENT if first_senses is None else "WordNet",
        "scores": scores,
        "sets": counts_of_sets,
    }
    write_json(arguments.output_file, numbers)
