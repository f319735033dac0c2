"""Ends of AllenNLP's commands: what is wrong with the input is one line."""

import functools
import json
import os
import sys
from types import TracebackType

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.printable import one_line

__all__ = ["end_in_one_line"]

# Packages whose own errors are sentences for the user.
_PACKAGES = ("allennlp", "allennlp_models", "elmo_tasks")


def end_in_one_line(commands: Module) -> None:
    """
    Symptom: a mistake in a config or in data, and Ctrl-C, end `allennlp` with some forty lines of traceback, at whose
    end the sentence that matters is hard to find.

    Cause: `allennlp.commands.main` catches nothing. What AllenNLP, or this package, has raised to say what is wrong is
    now one line; errors of torch and of the user's own code keep their traceback, and `ALLENNLP_DEBUG=1` shows all.
    """
    original = commands.main

    @functools.wraps(original)
    def main(prog: str | None = None) -> None:
        before = sys.excepthook
        # Called at the very end of a process that is over, so that callers of `main` still see the error itself.
        sys.excepthook = functools.partial(_end, before)
        original(prog)
        sys.excepthook = before

    commands.main = main


def _end(before: object, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    command = " ".join(["allennlp", *sys.argv[1:2]])
    if issubclass(kind, KeyboardInterrupt) and not os.environ.get("ALLENNLP_DEBUG"):
        resume = ": the same command with --recover resumes" if sys.argv[1:2] == ["train"] else ""
        print(f"\n{command}: {one_line(error) or f'interrupted{resume}'}", file=sys.stderr)
    elif _is_for_the_user(error, traceback) and not os.environ.get("ALLENNLP_DEBUG"):
        print(f"{command}: error: {one_line(error)} (ALLENNLP_DEBUG=1 shows where)", file=sys.stderr)
    else:
        before(kind, error, traceback)  # type: ignore[operator]


def _is_for_the_user(error: BaseException, traceback: TracebackType | None) -> bool:
    checks = sys.modules.get("allennlp.common.checks")
    if checks is not None and isinstance(error, checks.ConfigurationError):
        return True
    if isinstance(error, json.JSONDecodeError) or not isinstance(error, ValueError | OSError | ImportError):
        return False
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    raised_in = "" if traceback is None else traceback.tb_frame.f_globals.get("__name__", "")
    return isinstance(error, OSError) or raised_in.partition(".")[0] in _PACKAGES
