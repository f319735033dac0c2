"""The ends of commands: an error or an interruption is one line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from allennlp.common.checks import ConfigurationError

__all__ = ["endings_in_one_line"]

# 128 and the number of SIGINT, as shells have it.
_INTERRUPTED = 130


@contextmanager
def endings_in_one_line(
    command: str, *also: type[Exception], resume: str = "nothing is kept; the same command starts over"
) -> Iterator[None]:
    """
    Ends the process with one line on stderr: with status 1 if an error says what is wrong with the input, and with
    status 130 after Ctrl-C. Other errors keep their traceback.

    # Parameters

    command
        The name of the command.
    also
        Further errors that say what is wrong with the input.
    resume
        How to resume after Ctrl-C.
    """
    try:
        yield
    except (ConfigurationError, ImportError, OSError, ValueError, *also) as error:
        sys.exit(f"allennlp {command}: error: {' '.join(str(error).split())}")
    except KeyboardInterrupt as interruption:
        # A job that knows better how far it has come says so itself.
        print(f"\nallennlp {command}: {str(interruption) or f'interrupted: {resume}'}", file=sys.stderr)
        sys.exit(_INTERRUPTED)
