"""`allennlp elmo-config`: a config with all its imports and variables replaced by their values."""

import argparse
import json
from pathlib import Path

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params

from elmo_tasks.files.shipped import TRAINING_CONFIGS

__all__ = ["EvaluatedConfig"]


@Subcommand.register("elmo-config")
class EvaluatedConfig(Subcommand):
    """Print a training config as JSON, which programs that evaluate Jsonnet themselves can read."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(
            self.name, description=self.__doc__, help=self.__doc__
        )
        subparser.add_argument(
            "config", help="a file, or the name of an included config, such as ner_elmo"
        )
        subparser.add_argument(
            "-o", "--overrides", default="", help='as for `train`: {"trainer.num_epochs": 3}'
        )
        subparser.set_defaults(func=_print)
        return subparser


def _print(arguments: argparse.Namespace) -> None:
    file = TRAINING_CONFIGS / f"{arguments.config}.jsonnet"
    if not file.is_file():
        file = Path(arguments.config)
    config = Params.from_file(file, arguments.overrides)
    print(json.dumps(config.as_dict(quiet=True), indent=2, ensure_ascii=False))
