"""`allennlp elmo-squad-predictions`: answers as the official script of SQuAD evaluates them."""

import argparse
import json
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.data.formats.json_objects import check_unicode, json_object
from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.printable import printable

__all__ = ["SquadPredictions"]


@Subcommand.register("elmo-squad-predictions")
class SquadPredictions(Subcommand):
    """
    Makes one JSON object of ids and answers, which `evaluate-v1.1.py` reads, of the lines that `allennlp predict
    --use-dataset-reader --output-file` writes for a file of SQuAD.

    Registered as a `Subcommand` with name "elmo-squad-predictions".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write predictions for SQuAD as its official script reads them: one JSON object, id to answer."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("predictions", help="JSON lines of `allennlp predict --use-dataset-reader`")
        subparser.add_argument("output", type=Path, help="the JSON file to write")
        subparser.add_argument("--force", action="store_true", help="overwrite a file that is there")
        subparser.set_defaults(func=_write)
        return subparser


def _write(arguments: argparse.Namespace) -> None:
    if arguments.output.is_file() and not arguments.force:
        raise FileExistsError(f"{arguments.output} exists: give --force to overwrite it")
    check_not_input(arguments.output, arguments.predictions)
    answers = _answers(arguments.predictions)
    with atomic_file(arguments.output) as file:
        file.write_text(json.dumps(answers, ensure_ascii=False) + "\n", encoding="utf-8")
    print(printable(f"wrote {len(answers)} answers to {arguments.output}"))


def _answers(path: str) -> dict[str, str]:
    """
    The answer to each question.

    # Raises

    `ValueError`
        If a line is not a prediction with an id, or answers a question again; the message names file and line.
    """
    answers: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            values = json_object(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: must be a JSON object, but is {line!r:.100} ({error})") from None
        question, answer = values.get("id"), values.get("best_span_str")
        if not isinstance(question, str) or not question or not isinstance(answer, str):
            raise ValueError(
                f"{path}, line {number}: must have the 'id' of a question and the answer as 'best_span_str', but is "
                f"{line!r:.100}: predict from a file of SQuAD with `allennlp predict --use-dataset-reader`"
            )
        check_unicode(answer, f"{path}, line {number}: the answer")
        if question in answers:
            raise ValueError(
                f"{path}, line {number}: a question must have one answer, but {question} has one in line "
                f"{lines[question]} too: remove one of the two"
            )
        answers[question], lines[question] = answer, number
    if not answers:
        raise ValueError(f"{path} must hold at least one prediction, but holds none")
    return answers
