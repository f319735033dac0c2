"""`allennlp elmo-distill`: a small model that learns from what a large one says of unlabelled text."""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params

from elmo_tasks.distillation.run import Distillation, distill
from elmo_tasks.vectors.elmo_embedder import device_of

__all__ = ["Distill"]


@Subcommand.register("elmo-distill")
class Distill(Subcommand):
    """
    Trains a student on its labelled data and on unlabelled text, which one or several teachers have labelled with
    probabilities.

    Registered as a `Subcommand` with name "elmo-distill".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Train a small model on what one or several large ones say of unlabelled text."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("teachers", nargs="+", type=Path, help="archives; probabilities of several are averaged")
        subparser.add_argument(
            "unlabelled", type=Path, help="a sentence a line with white space between its words, or JSON lines"
        )
        subparser.add_argument("--student", required=True, type=Path, help="config of the student")
        subparser.add_argument("-s", "--serialization-dir", required=True, type=Path, help="folder for the result")
        subparser.add_argument("-o", "--overrides", default="", help="overrides of the config, as of `train`")
        default = Distillation()
        subparser.add_argument(
            "--loss",
            choices=("cross-entropy", "mse"),
            default="cross-entropy",
            help="cross entropy of the probabilities, or mean squared difference of the logits",
        )
        subparser.add_argument(
            "--temperature", type=float, default=default.temperature, help="of both models, for the cross entropy"
        )
        subparser.add_argument(
            "--labelled-weight", type=float, default=default.labelled_weight, help="of the labelled texts, from 0 to 1"
        )
        subparser.add_argument("--max-texts", type=int, help="how many unlabelled texts are used at most")
        subparser.add_argument("--batch-size", type=int, default=default.batch_size, help="of the teacher")
        subparser.add_argument("--cuda-device", type=int, default=-1, help="of the teacher; -1 (default) is the CPU")
        subparser.set_defaults(func=_distill)
        return subparser


def _distill(arguments: argparse.Namespace) -> None:
    for name in ("max_texts", "batch_size"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, but is {value}")
    how = Distillation(
        loss="mse" if arguments.loss == "mse" else "cross_entropy",
        temperature=arguments.temperature,
        labelled_weight=arguments.labelled_weight,
        most_texts=arguments.max_texts,
        batch_size=arguments.batch_size,
        device=device_of(arguments.cuda_device),
    )
    student = Params.from_file(str(arguments.student), arguments.overrides).as_dict(quiet=True)
    archive = distill(arguments.teachers, arguments.unlabelled, student, arguments.serialization_dir, how)
    print(f"the student is in {archive}")
