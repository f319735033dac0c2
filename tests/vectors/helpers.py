from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def recorded(items: Iterable[Item], read: list[Item]) -> Iterator[Item]:
    """The items, each of which is added to `read` when it is read."""
    for item in items:
        read.append(item)
        yield item


def assert_all_equal(arrays: Iterable[np.ndarray], expected: Iterable[np.ndarray]) -> None:
    for array, expected_array in zip(arrays, expected, strict=True):
        assert np.array_equal(array, expected_array)
