"""A progress bar on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

__all__ = ["progress_bar"]

# In a log, each state of a bar is a line.
_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress_bar(total: int | None, shown: bool | None, unit: str, done: int = 0) -> Iterator[Callable[[int], object]]:
    """
    A bar of tqdm's. Where stderr is no terminal it is a line in ten seconds at most.

    # Parameters

    total
        How many there are, if that is known.
    shown
        `None`: only where stderr is a terminal, so that logs are not full of bars.
    unit
        The name of the things that are counted.
    done
        How many of the total an earlier run has done: speed and time left are those of this run.

    # Returns

    `ContextManager[Callable[[int], object]]`
        To be called with the number that has been done since the last call.
    """
    interval = 0.1 if sys.stderr.isatty() else _SECONDS_BETWEEN_LINES
    disable = None if shown is None else not shown
    with tqdm(total=total, initial=done, unit=f" {unit}", disable=disable, mininterval=interval) as bar:
        yield bar.update
