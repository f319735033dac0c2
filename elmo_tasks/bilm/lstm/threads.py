"""Threads by work: small products are computed by one thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["threads_for"]

# Multiply-adds of a product that one thread computes as fast as two on a quiet machine (small-open, up to 4 sentences;
# `benchmarks/bilm.py`). Next to a busy process two are several times slower: each product waits until the other thread
# is scheduled.
_ENOUGH_FOR_TWO = 2**22

_LOCK = threading.Lock()
# How many threads are in a block with one thread, and the number of threads before the first of them was.
_n_inside = 0
_at_rest = 1
# Threads that have been here.
_KNOWN = threading.local()


@contextmanager
def threads_for(n_multiply_adds: int) -> Iterator[None]:
    """
    Computes what is in the block with one thread, if its products are small. Other threads keep their number; but a
    thread of the program that uses torch for the first time meanwhile, and not for a biLM, is left with one.

    # Parameters

    n_multiply_adds
        Of the products of which there are many.
    """
    global _n_inside, _at_rest
    is_small = n_multiply_adds <= _ENOUGH_FOR_TWO
    with _LOCK:
        before = torch.get_num_threads()
        # torch gives a new thread the number that was set last, in whichever thread.
        if before == 1 and _n_inside and not hasattr(_KNOWN, "seen"):
            before = _at_rest
            torch.set_num_threads(before)
        _KNOWN.seen = True
        if before == 1 or not is_small:
            is_small = False
        else:
            _at_rest = before if not _n_inside else _at_rest
            _n_inside += 1
            torch.set_num_threads(1)
    try:
        yield
    finally:
        if is_small:
            with _LOCK:
                torch.set_num_threads(before)
                _n_inside -= 1
