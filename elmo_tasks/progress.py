"""How far a long computation has come, on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["progress_bar"]

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress_bar(total: int | None, shown: bool | None, unit: str, done: int = 0) -> Iterator[Callable[[int], object]]:
    """
    A bar of tqdm's. Without tqdm, which comes with spaCy, there are lines, one in ten seconds at
    most and one at the end.

    # Parameters

    total : `int`
        How many there are, if that is known.
    shown : `bool`
        `None`: where stderr is a terminal, so that logs are not full of bars.
    unit : `str`
        What is counted.
    done : `int`, optional (default = `0`)
        Of the total, what an earlier run has done: speed and time left are those of this run.

    # Returns

    `ContextManager[Callable[[int], object]]`
        To be called with the number that has been done since the last call.
    """
    if shown is False or (shown is None and not sys.stderr.isatty()):
        yield lambda number: None
        return
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        # A job of hours must say that it goes on; a line now and then says as much as the bar.
        yield _Lines(total, unit, done, sys.stderr)
        return
    with tqdm(total=total, initial=done, unit=f" {unit}") as bar:
        yield bar.update


class _Lines:
    def __init__(self, total: int | None, unit: str, done: int, stream: TextIO) -> None:
        self._total, self._unit, self._before, self._done = total, unit, done, done
        self._stream = stream
        self._start = self._last = time.monotonic()

    def __call__(self, number: int) -> None:
        self._done += number
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LINES and self._done != self._total:
            return
        self._last = now
        speed = (self._done - self._before) / max(now - self._start, 1e-9)
        of, left = "", ""
        if self._total is not None:
            of = f" of {self._total:,}"
            left = f", {(self._total - self._done) / speed if speed else 0.0:,.0f} s left"
        print(f"{self._done:,}{of} {self._unit}, {speed:,.0f} {self._unit}/s{left}", file=self._stream)
