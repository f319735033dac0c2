"""A mapping of bounded size, for what one caller computes and others read soon after."""

import os
import threading
from collections.abc import Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

__all__ = ["Recent"]

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """
    Keeps values up to a sum of sizes. Threads may share it; a copy, pickled or in a forked process,
    starts empty.

    # Parameters

    max_size
        The largest sum of the sizes that `put` is given.
    keeps_first
        What is kept if it is full: the values that were used last, or, for data that are read in
        each epoch, the first ones.
    """

    def __init__(self, max_size: float, *, keeps_first: bool = False) -> None:
        self._max_size = max_size
        self._keeps_first = keeps_first
        self._size = 0
        # From the value that was used longest ago to the last one.
        self._values: dict[Hashable, tuple[Value, int]] = {}
        self._lock = threading.Lock()
        _INSTANCES.add(self)

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            if key not in self._values:
                return None
            # Moves it to the end, as the one used last.
            value, size = self._values.pop(key)
            self._values[key] = (value, size)
        return value

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keeps a value, which nobody may change, unless the key has one."""
        with self._lock:
            is_full = self._size + size > self._max_size
            if key in self._values or (self._keeps_first and is_full):
                return
            self._values[key] = (value, size)
            self._size += size
            while self._size > self._max_size:
                oldest_key = next(iter(self._values))
                _, oldest_size = self._values.pop(oldest_key)
                self._size -= oldest_size

    def clear(self) -> None:
        self.__init__(self._max_size, keeps_first=self._keeps_first)  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        return _empty, (self._max_size, self._keeps_first)


_INSTANCES: WeakSet[Recent[Any]] = WeakSet()


def _empty(max_size: float, keeps_first: bool) -> Recent[Any]:
    return Recent(max_size, keeps_first=keeps_first)


def _clear_all() -> None:
    """Clears all in a forked process: a thread that does not exist there may hold their locks."""
    for recent in list(_INSTANCES):
        recent.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clear_all)
