"""`allennlp elmo-wsd`: word sense disambiguation."""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.analysis import WsdMeasurement, table_of
from elmo_tasks.environment import config_variables
from elmo_tasks.printable import printable, printable_lines

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
        subparser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
        subparser.add_argument("--batch-tokens", type=int, default=4096, help="words computed at once")
        subparser.add_argument("--max-sentences", type=int, help="learn from the first so many sentences only")
        subparser.add_argument("--output-file", type=Path, help="all numbers as JSON, as `make results` reads them")
        subparser.add_argument(
            "--predictions", type=Path, help="new folder for the answers, as the official scorer reads them"
        )
        subparser.set_defaults(func=_run)
        return subparser


def _run(arguments: argparse.Namespace) -> None:
    _check(arguments)
    variables = config_variables()
    found = WsdMeasurement.of(
        arguments.bilm or variables["ELMO_TASKS_BILM"],
        arguments.data or Path(variables["ELMO_TASKS_DATA"], "wsd"),
        train=arguments.train,
        wordnet=arguments.wordnet,
        distance=arguments.distance,
        precision=arguments.precision,
        max_sentences=arguments.max_sentences,
        batch_tokens=arguments.batch_tokens,
    )
    _print(found)
    if arguments.output_file is not None:
        found.write_scores(arguments.output_file)
    if arguments.predictions is not None:
        found.write_answers(arguments.predictions)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.predictions is not None and arguments.predictions.exists():
        raise ValueError(f"--predictions must name a new folder, but '{arguments.predictions}' is there already")
    if arguments.output_file is not None and arguments.output_file.is_dir():
        raise ValueError(f"--output-file must name a file, but '{arguments.output_file}' is a folder")
    outputs = [path for path in (arguments.output_file, arguments.predictions) if path is not None]
    if len(outputs) == 2:
        one, other = (path.resolve() for path in outputs)
        if one == other or one in other.parents or other in one.parents:
            raise ValueError(
                "--output-file and --predictions must differ, and neither be below the other, but are "
                f"'{outputs[0]}' and '{outputs[1]}'"
            )
    if arguments.max_sentences is not None and arguments.max_sentences < 1:
        raise ValueError(f"--max-sentences must be at least 1, but is {arguments.max_sentences}")
    # Before hours of work.
    for path in outputs:
        path.parent.mkdir(parents=True, exist_ok=True)


def _print(found: WsdMeasurement) -> None:
    senses, training = found.senses, printable(found.training)
    print(printable_lines(table_of(found.sets, found.scores)))
    print(f"\nsenses: {len(senses.senses):,}, the means of {senses.n_instances:,} instances of {training}")
    print(printable(f"first senses: {senses.first_senses.source}"))
    if senses.n_unknown_senses:
        print(
            f"Warning: {senses.n_unknown_senses:,} senses of {training} are not in this WordNet: the keys of the "
            "framework are those of WordNet 3.0"
        )
    if unanswered := sum(answered.n_unanswered for answered in found.sets):
        print(
            f"Warning: {unanswered:,} instances have no answer, since their lemma was not in training and has no first "
            "sense: only with WordNet 3.0 (--wordnet FOLDER) does F1 compare with the paper's"
        )
