"""How far a long computation has come, on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(total: int | None, shown: bool | None, unit: str) -> Iterator[Callable[[int], object]]:
    """
    A bar of tqdm's. Without tqdm, which comes with spaCy, there is none: it would be no reason to fail.

    # Parameters

    total : `int`
        How many there are, if that is known.
    shown : `bool`
        `None`: where stderr is a terminal, so that logs are not full of bars.
    unit : `str`
        What is counted.

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
        yield lambda number: None
        return
    with tqdm(total=total, unit=f" {unit}") as bar:
        yield bar.update
