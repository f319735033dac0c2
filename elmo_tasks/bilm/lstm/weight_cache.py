"""Values that are computed from frozen parameters, kept until the parameters change."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch

from elmo_tasks.bilm.weights_state import WeightsState

__all__ = ["WeightCache"]

T = TypeVar("T")


class WeightCache(Generic[T]):
    """
    A value made from parameters for fast use, and made again when they change. For parameters that are trained nothing
    is kept, since what trains and averages them changes them by way of `parameter.data`, which `WeightsState` does not
    see.

    A copy, pickled or not, starts empty.
    """

    def __init__(self) -> None:
        self._state = WeightsState()
        self._key: Any = None
        self._value: T | None = None

    def __call__(self, parameters: Sequence[torch.Tensor], key: Any, make: Callable[[], T]) -> T:
        """The value that `make` returned for these parameters and this key, or now returns."""
        if any(parameter.requires_grad for parameter in parameters):
            with torch.no_grad():
                return make()
        # No value: nothing was made yet, or making it failed.
        if self._value is None or self._key != key or not self._state.is_of(parameters):
            self._value = None  # Its memory is freed before that of the new one is taken.
            with torch.no_grad():
                self._value = make()
            self._state = WeightsState(parameters)
            self._key = key
        return self._value

    def __reduce__(self) -> tuple[type["WeightCache[T]"], tuple[()]]:
        return WeightCache, ()
