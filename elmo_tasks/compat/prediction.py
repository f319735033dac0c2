"""
`allennlp predict`: AllenNLP 2.10.1 gives up a whole file for one bad line, and does not say which.
"""

import argparse
import importlib
from functools import wraps
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = ["predict_line_by_line"]

_OUR_COMMAND = "elmo_tasks.commands.predict"


def predict_line_by_line(predict: Module) -> None:
    """
    Symptom: one bad line ends `allennlp predict` with a traceback that does not name it, and the good lines of its
    batch are lost.

    Cause: `_PredictManager` counts no lines and catches no error. The command now runs `elmo_tasks.commands.predict`,
    and has the option `--keep-going`. The option cannot come with the plugin: AllenNLP parses the arguments of its own
    commands before it imports any.
    """
    original = predict.Predict.add_subparser

    @wraps(original)
    def add_subparser(self: Any, parser: Any) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = original(self, parser)
        subparser.add_argument(
            "--keep-going",
            action="store_true",
            help='write {"error": ..., "line": n} in place of the prediction of a bad line, and predict the others; '
            "without it the first bad line ends the command",
        )
        subparser.set_defaults(func=_predict)
        return subparser

    predict.Predict.add_subparser = add_subparser


def _predict(arguments: argparse.Namespace) -> None:
    importlib.import_module(_OUR_COMMAND).predict(arguments)
