"""What other libraries log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["logging_from"]


@contextmanager
def logging_from(level: int, library: str) -> Iterator[None]:
    """
    Hides what a library logs below a level.

    # Parameters

    level
        As `logging.WARNING`.
    library
        Its name, as its loggers begin with it.
    """
    logger = logging.getLogger(library)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
