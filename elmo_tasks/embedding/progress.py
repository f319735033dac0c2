"""How far a job has come: a bar, or lines where there is no tqdm."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["progress"]

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress(total: int, done: int, shown: bool | None) -> Iterator[Callable[[int], object]]:
    """
    # Parameters

    total : `int`
        Words of the text.
    done : `int`
        Of them, those that an earlier run has done: speed and time left are those of this run.
    shown : `bool`
        `None`: where stderr is a terminal, so that logs are not full of bars.

    # Returns

    `ContextManager[Callable[[int], object]]`
        To be called with the number of words since the last call.
    """
    if shown is False or (shown is None and not sys.stderr.isatty()):
        yield lambda number: None
        return
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        # A job of hours must say that it goes on; a line now and then says as much as the bar.
        yield _Lines(total, done, sys.stderr)
        return
    with tqdm(total=total, initial=done, unit=" tokens", unit_scale=True) as bar:
        yield bar.update


class _Lines:
    """Prints a line, every ten seconds at most, and at the end."""

    def __init__(self, total: int, done: int, stream: TextIO) -> None:
        self._total, self._before, self._done = total, done, done
        self._stream = stream
        self._start = self._last = time.monotonic()

    def __call__(self, number: int) -> None:
        self._done += number
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LINES and self._done < self._total:
            return
        self._last = now
        speed = (self._done - self._before) / max(now - self._start, 1e-9)
        left = (self._total - self._done) / speed if speed else 0.0
        print(f"{self._done:,} of {self._total:,} tokens, {speed:,.0f} tokens/s, {left:,.0f} s left", file=self._stream)
