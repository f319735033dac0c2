"""Errors of commands, as people read them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from allennlp.common.checks import ConfigurationError

__all__ = ["errors_in_one_line"]


@contextmanager
def errors_in_one_line(command: str, *also: type[Exception]) -> Iterator[None]:
    """
    Ends the process with status 1 and one line on stderr where an error says what is wrong with the input; others are
    left alone.

    # Parameters

    command : `str`
        The name of the command.
    also : `Type[Exception]`
        Further errors that say what is wrong with the input.
    """
    try:
        yield
    except (ConfigurationError, ImportError, OSError, ValueError, *also) as error:
        sys.exit(f"allennlp {command}: error: {' '.join(str(error).split())}")
