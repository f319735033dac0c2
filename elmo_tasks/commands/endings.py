"""The ends of commands: an error, Ctrl-C or SIGTERM is one line."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import SigTermReceived

from elmo_tasks.printable import UNREAD, drop_unread_stdout, one_line, printable

__all__ = ["endings_in_one_line"]

# 128 and the number of the signal, as shells have it.
_INTERRUPTED, _TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM


@contextmanager
def endings_in_one_line(
    command: str, *also: type[Exception], resume: str = "nothing is kept; the same command starts over"
) -> Iterator[None]:
    """
    Ends the process with one line on stderr: with status 1 if an error says what is wrong with the input, or stdout
    cannot be written to, with status 130 after Ctrl-C, and with 143 after SIGTERM; without a line and with status 141
    if nobody reads stdout. Other errors keep their traceback.

    # Parameters

    command
        The name of the command.
    also
        Further errors that say what is wrong with the input.
    resume
        How to resume after Ctrl-C or SIGTERM.
    """
    try:
        yield
        _flush()
    except SigTermReceived:
        print(f"allennlp {command}: ended by SIGTERM: {resume}", file=sys.stderr)
        sys.exit(_TERMINATED)
    except BrokenPipeError as error:
        sys.exit(UNREAD if drop_unread_stdout() else f"allennlp {command}: error: {one_line(error)}")
    except (ConfigurationError, ImportError, OSError, ValueError, *also) as error:
        sys.exit(f"allennlp {command}: error: {one_line(error)}")
    except KeyboardInterrupt as interruption:
        # A job that knows better how far it has come says so itself.
        print(f"\nallennlp {command}: {printable(str(interruption)) or f'interrupted: {resume}'}", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _flush() -> None:
    """Writes what was printed, so that an error of that is not found out after the last line of the program."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python flushes once more when it ends, and would print a message of its own.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise OSError(error.errno, error.strerror, "stdout") from error
