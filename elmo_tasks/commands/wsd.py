"""`allennlp elmo-wsd`: which sense a word has."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.analysis import AnsweredSet, FirstSenses, WordSenses, WsdScore, scores_of, table_of
from elmo_tasks.commands.errors import errors_in_one_line
from elmo_tasks.data import WsdCorpus
from elmo_tasks.environment import config_variables
from elmo_tasks.replication import WORD_SENSES
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["DisambiguateWords"]


@Subcommand.register("elmo-wsd")
class DisambiguateWords(Subcommand):
    """
    Prints how many words of the test sets get the right sense from each layer of a biLM: Table 5 of the paper.

    Registered as a `Subcommand` with name "elmo-wsd".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Print the F1 of word sense disambiguation by nearest neighbour, for each layer of a biLM."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument(
            "--bilm", help="name of a biLM or its folder (default: ELMO_TASKS_BILM, or the one that ships)"
        )
        subparser.add_argument(
            "--data", type=Path, help="folder with train/ and test/ (default: wsd/ in the folder ELMO_TASKS_DATA)"
        )
        subparser.add_argument("--train", type=Path, help="NAME.data.xml to learn from, if train/ has several")
        subparser.add_argument(
            "--wordnet",
            type=Path,
            help="folder with index.sense of WordNet 3.0, NLTK's corpora/wordnet for example, for first senses",
        )
        subparser.add_argument("--distance", choices=("cosine", "euclidean"), default="cosine")
        subparser.add_argument("--precision", choices=("float32", "tf32", "bf16"), default="float32")
        subparser.add_argument("--batch-tokens", type=int, default=4096, help="words computed at once")
        subparser.add_argument("--max-sentences", type=int, help="learn from the first so many sentences only")
        subparser.add_argument("--output-file", type=Path, help="all numbers as JSON, as `make results` reads them")
        subparser.add_argument(
            "--predictions", type=Path, help="new folder for the answers, as the official scorer reads them"
        )
        subparser.set_defaults(func=_run)
        return subparser


def _run(arguments: argparse.Namespace) -> None:
    with errors_in_one_line("elmo-wsd"):
        _check(arguments)
        variables = config_variables()
        data = arguments.data or Path(variables["ELMO_TASKS_DATA"], "wsd")
        training, tests = _training(arguments.train, data / "train"), WsdCorpus.find(data / "test")
        first_senses = None if arguments.wordnet is None else FirstSenses.from_wordnet(arguments.wordnet)
        bilm = arguments.bilm or variables["ELMO_TASKS_BILM"]
        senses = WordSenses(
            Elmo.from_pretrained(bilm, precision=arguments.precision),
            training,
            first_senses=first_senses,
            distance=arguments.distance,
            max_sentences=arguments.max_sentences,
            batch_tokens=arguments.batch_tokens,
        )
        sets = [senses.answer(corpus) for corpus in tests]
        scores = scores_of(sets)
        if arguments.output_file is not None:
            _write_numbers(arguments, bilm, training, senses, sets, scores)
        if arguments.predictions is not None:
            _write_answers(arguments.predictions, sets)
    print(table_of(sets, scores))
    print(f"\nsenses: {len(senses.senses):,}, the means of {senses.n_instances:,} instances of {training.name}")
    print(f"first senses: {senses.first_senses.source}")
    if senses.n_unknown_senses:
        print(
            f"Warning: {senses.n_unknown_senses:,} senses of {training.name} are not in this WordNet: the keys of the "
            "framework are those of WordNet 3.0"
        )
    if unanswered := sum(answered.n_unanswered for answered in sets):
        print(
            f"Warning: {unanswered:,} instances have no answer, since their lemma was not in training and has no first "
            "sense: only with WordNet 3.0 (--wordnet FOLDER) does F1 compare with the paper's"
        )


def _check(arguments: argparse.Namespace) -> None:
    if arguments.predictions is not None and arguments.predictions.exists():
        raise ValueError(f"--predictions must name a new folder, but '{arguments.predictions}' is there already")
    if arguments.max_sentences is not None and arguments.max_sentences < 1:
        raise ValueError(f"--max-sentences must be at least 1, but is {arguments.max_sentences}")


def _training(path: Path | None, folder: Path) -> WsdCorpus:
    if path is not None:
        return WsdCorpus(path)
    corpora = WsdCorpus.find(folder)
    if len(corpora) > 1:
        names = ", ".join(str(corpus.path) for corpus in corpora)
        raise ValueError(
            f"'{folder}' must have one data set to learn from, but has {names}: choose one with --train, or keep only "
            "one there"
        )
    return corpora[0]


def _write_numbers(
    arguments: argparse.Namespace,
    bilm: str,
    training: WsdCorpus,
    senses: WordSenses,
    sets: list[AnsweredSet],
    scores: dict[str, dict[str, WsdScore]],
) -> None:
    numbers: dict[str, Any] = {
        "format": 1,
        "table": WORD_SENSES,
        "bilm": Path(bilm).name,
        "training": training.name,
        "wordnet": arguments.wordnet is not None,
        "distance": arguments.distance,
        "max_sentences": arguments.max_sentences,
        "instances_of_training": senses.n_instances,
        "senses": len(senses.senses),
        # Without the path of WordNet, which is of this machine.
        "first_senses": "WordNet" if arguments.wordnet else senses.first_senses.source,
        "senses_not_in_wordnet": senses.n_unknown_senses,
        "scores": {name: {group: asdict(score) for group, score in row.items()} for name, row in scores.items()},
        "sets": {a.name: {"lemma_not_in_training": a.n_unseen, "unanswered": a.n_unanswered} for a in sets},
    }
    arguments.output_file.parent.mkdir(parents=True, exist_ok=True)
    arguments.output_file.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


def _write_answers(folder: Path, sets: list[AnsweredSet]) -> None:
    folder.mkdir(parents=True)
    for answered in sets:
        for name, answers in answered.answers.items():
            lines = "".join(f"{instance} {' '.join(senses)}\n" for instance, senses in answers.items())
            file = folder / f"{answered.name}.{name.replace(' ', '-')}.key.txt"
            file.write_text(lines, encoding="utf-8")
