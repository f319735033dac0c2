"""Commands of AllenNLP 2.10.1: `allennlp predict` line by line, options of `evaluate`, errors that are one line."""

import argparse
import functools
import importlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace, TracebackType
from typing import Any

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.printable import one_line
from elmo_tasks.unicode_text import add_nfc_argument

__all__ = [
    "check_output_files_of_evaluate",
    "end_in_one_line",
    "keep_tracebacks_in_logs",
    "predict_line_by_line",
    "take_batch_size_of_evaluate",
]

_OUR_COMMAND = "elmo_tasks.commands.predict"
# Packages whose own errors are sentences for the user.
_PACKAGES = ("allennlp", "allennlp_models", "elmo_tasks")


def end_in_one_line(commands: Module) -> None:
    """
    Symptom: a mistake in a config or in data, Ctrl-C and SIGTERM end `allennlp` with some forty lines of traceback, at
    whose end the sentence that matters is hard to find; after SIGTERM with status 1, as after an error.

    Cause: `allennlp.commands.main` catches nothing. What AllenNLP, or this package, has raised to say what is wrong is
    now one line; errors of torch and of the user's own code keep their traceback, and `ALLENNLP_DEBUG=1` shows all.
    After SIGTERM the status is 143, as a shell gives it for a program that does not catch the signal.
    """
    original = commands.main

    @functools.wraps(original)
    def main(prog: str | None = None) -> None:
        before = sys.excepthook
        # Called at the very end of a process that is over, so that callers of `main` still see the error itself. It
        # stays after an error, which has not come to that end yet.
        if not isinstance(before, functools.partial):
            sys.excepthook = functools.partial(_end, before)
        original(prog)
        sys.excepthook = before

    commands.main = main


def keep_tracebacks_in_logs(common_logging: Module) -> None:
    """
    Symptom: `end_in_one_line` has no effect on an error after a training has begun its log, as one in its data.

    Cause: `prepare_global_logging` sets a hook of its own, which logs the traceback, and errors of the log go to stderr
    too. The traceback is now in out.log alone, and stderr has the line.
    """
    original = common_logging.prepare_global_logging

    @functools.wraps(original)
    def prepare_global_logging(*args: Any, **kwargs: Any) -> None:
        before = sys.excepthook
        original(*args, **kwargs)
        # That of `main`: in other programs AllenNLP's stays.
        if isinstance(before, functools.partial) and before.func is _end:
            sys.excepthook = functools.partial(_end_of_log, before, sys.excepthook)

    common_logging.prepare_global_logging = prepare_global_logging


_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def _end_of_log(
    ours: _Hook, theirs: _Hook, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    is_ended = _signal_of(kind) is not None
    if os.environ.get("ALLENNLP_DEBUG") or not (is_ended or _is_for_the_user(error, traceback)):
        theirs(kind, error, traceback)
        _exit_after_sigterm(kind)
        return
    root = logging.getLogger()
    exception = (kind, error, traceback)
    record = root.makeRecord(root.name, logging.CRITICAL, __file__, 0, "Uncaught exception", (), exception)
    for handler in root.handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(record)
    ours(kind, error, traceback)


def _end(before: _Hook, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    command = " ".join(["allennlp", *sys.argv[1:2]])
    number = _signal_of(kind)
    if number is not None and not os.environ.get("ALLENNLP_DEBUG"):
        resume = ": the same command with --recover resumes" if sys.argv[1:2] == ["train"] else ""
        # After the ^C of a terminal.
        begin, ended = ("\n", "interrupted") if number is signal.SIGINT else ("", "ended by SIGTERM")
        print(f"{begin}{command}: {one_line(error) or f'{ended}{resume}'}", file=sys.stderr)
    elif _is_for_the_user(error, traceback) and not os.environ.get("ALLENNLP_DEBUG"):
        print(f"{command}: error: {one_line(error)} (ALLENNLP_DEBUG=1 shows where)", file=sys.stderr)
    else:
        before(kind, error, traceback)
    _exit_after_sigterm(kind)


def _exit_after_sigterm(kind: type[BaseException]) -> None:
    # Python ends by SIGINT itself, so that a shell's loop ends too, and takes the status from a hook that raises this.
    if _signal_of(kind) is signal.SIGTERM:
        raise SystemExit(128 + signal.SIGTERM)


def _signal_of(kind: type[BaseException]) -> signal.Signals | None:
    """The signal that AllenNLP, or Python, has made this error of."""
    if issubclass(kind, KeyboardInterrupt):
        return signal.SIGINT
    util = sys.modules.get("allennlp.common.util")
    return signal.SIGTERM if util is not None and issubclass(kind, util.SigTermReceived) else None


def _is_for_the_user(error: BaseException, traceback: TracebackType | None) -> bool:
    checks = sys.modules.get("allennlp.common.checks")
    if checks is not None and isinstance(error, checks.ConfigurationError):
        return True
    if not isinstance(error, ValueError | OSError | ImportError):
        return False
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    raised_in = "" if traceback is None else traceback.tb_frame.f_globals.get("__name__", "")
    return isinstance(error, OSError) or raised_in.partition(".")[0] in _PACKAGES


def predict_line_by_line(predict: Module) -> None:
    """
    Symptom: one bad line ends `allennlp predict` with a traceback that does not name it, and the good lines of its
    batch are lost.

    Cause: `_PredictManager` counts no lines and catches no error. The command now runs `elmo_tasks.commands.predict`,
    and has the options `--keep-going` and `--nfc`. They cannot come with the plugin: AllenNLP parses the arguments of
    its own commands before it imports any.
    """
    original = predict.Predict.add_subparser

    @functools.wraps(original)
    def add_subparser(self: Any, parser: Any) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = original(self, parser)
        subparser.add_argument(
            "--keep-going",
            action="store_true",
            help='write {"error": ..., "line": n} in place of the prediction of a bad line, and predict the others; '
            "without it the first bad line ends the command",
        )
        add_nfc_argument(subparser)
        subparser.set_defaults(func=_predict)
        return subparser

    predict.Predict.add_subparser = add_subparser


def _predict(arguments: argparse.Namespace) -> None:
    importlib.import_module(_OUR_COMMAND).predict(arguments)


def take_batch_size_of_evaluate(evaluate: Module) -> None:
    """
    Symptom: `allennlp evaluate --batch-size` ends with `batch_sampler option is mutually exclusive with batch_size` for
    a model that was trained with a sampler, as most of ours.

    Cause: the option is added to the settings of the training. It now is the batch size of the sampler, or takes the
    place of one that has none.
    """

    original = evaluate.DataLoader

    def from_params(params: Any, **extras: Any) -> Any:
        sampler = params.get("batch_sampler")
        if "batch_size" in params and sampler is not None:
            if "batch_size" in sampler:
                sampler["batch_size"] = params.pop("batch_size")
            else:
                params.pop("batch_sampler")
        return original.from_params(params=params, **extras)

    # The command uses nothing else of it.
    evaluate.DataLoader = SimpleNamespace(from_params=from_params)


def check_output_files_of_evaluate(evaluate: Module) -> None:
    """
    Symptom: `allennlp evaluate A,B --output-file C` ends with an `AssertionError` about an argument that the command
    does not have.

    Cause: an `assert` for what the user has typed.
    """
    original = evaluate.evaluate_from_args

    @functools.wraps(original)
    def evaluate_from_args(args: argparse.Namespace) -> Any:
        from allennlp.common.checks import ConfigurationError

        inputs = _evaluated(args.input_file)
        # Files have names, of which others can be made; objects have none.
        has_names = all(isinstance(each, str) for each in inputs)
        for option, value, made in (
            ("--output-file", args.output_file, "METRICS"),
            ("--predictions-output-file", args.predictions_output_file, "PREDS"),
        ):
            is_made = args.auto_names in (made, "ALL")
            if value is None or (is_made and has_names):
                continue
            if is_made:
                raise ConfigurationError(f"--auto-names needs inputs that are files: name those of {option}")
            if (n_outputs := len(value.split(","))) != len(inputs):
                all_names = made if args.auto_names == "NONE" else "ALL"
                raise ConfigurationError(
                    f"{option} must name a file for each of the {len(inputs)} that are evaluated, with commas between "
                    f"them, but names {n_outputs}"
                    + (f": or let --auto-names {all_names} name them" if has_names else "")
                )
        return original(args)

    evaluate.evaluate_from_args = evaluate_from_args


def _evaluated(input_file: str) -> list[Any]:
    try:
        # Some readers take objects.
        inputs: list[Any] = json.loads(f"[{input_file}]")
    except json.JSONDecodeError:
        return input_file.split(",")
    return inputs
