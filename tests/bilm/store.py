"""Helpers for the tests of the layer store: arrays that identify their keys, and processes to be killed."""

import copy
import functools
import logging
import os
import random
from collections.abc import Callable

import numpy as np

from elmo_tasks.bilm.cache import layer_store
from elmo_tasks.bilm.cache.layer_store import LayerStore

LIMIT = 2**24
FLOAT32 = np.dtype("float32")


def key(number: int) -> bytes:
    """Spread over the table, as digests are."""
    return random.Random(number).randbytes(32)


@functools.lru_cache(700)
def array(number: int, n_words: int = 20) -> np.ndarray:
    """About 60 kB, different for each key; drawn once a process, as tests compare hundreds many times."""
    drawn = np.random.default_rng(number).standard_normal((3, n_words, 256), dtype=np.float32)
    drawn.setflags(write=False)
    return drawn


def write(store: LayerStore, *numbers: int) -> None:
    store.write({key(number): array(number) for number in numbers})


def has(store: LayerStore, *numbers: int) -> list[bool]:
    """Which are found; their content must be as it was written."""
    targets = [np.full(array(number).shape, np.nan, np.float32) for number in numbers]
    found = store.read([(key(number), target) for number, target in zip(numbers, targets, strict=True)], FLOAT32)
    for number, target, is_found in zip(numbers, targets, found, strict=True):
        assert not is_found or np.array_equal(target, array(number))
    return found


def close() -> None:
    """Closes all files, as the end of a process does."""
    layer_store._FILES.clear()


def fork(function: Callable[[], object]) -> int:
    """Runs a function in a child, which ends with 0 if it returns and with 1 if it raises."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    return child


def end_of(child: int) -> int:
    """The exit status of a child; the negative signal if one killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def assert_off(store: LayerStore, warnings: list[logging.LogRecord], reason: str = "") -> None:
    """The store finds nothing and logs one warning, however often it is used, by any store of the same folder."""
    for used in (store, copy.deepcopy(store)):
        write(used, 0, 1)
        assert has(used, 0, 1) == [False, False]
    assert [record.levelname for record in warnings] == ["WARNING"]
    message = warnings[0].getMessage()
    assert store.folder in message
    assert reason in message
    assert "computed each time" in message
