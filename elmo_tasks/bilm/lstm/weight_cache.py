"""Values that are computed from frozen parameters, kept until the parameters change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch

from elmo_tasks.bilm.weights_state import WeightsState

__all__ = ["WeightCache"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Entry(Generic[T]):
    state: WeightsState
    key: Any
    value: T


class WeightCache(Generic[T]):
    """
    A value made from parameters for fast use, and made again when they change. For parameters that are trained nothing
    is kept, since what trains and averages them changes them in ways that `WeightsState` does not see. Threads that
    need a value at the same time may make it twice.

    A copy, pickled or not, starts empty.
    """

    def __init__(self) -> None:
        # `None`: nothing was made yet, or making it failed. One attribute, so that a thread sees all of an entry.
        self._entry: _Entry[T] | None = None

    def __call__(self, parameters: Sequence[torch.Tensor], key: Any, make: Callable[[], T]) -> T:
        """The value that `make` returned for these parameters and this key, or now returns."""
        if any(parameter.requires_grad for parameter in parameters):
            self.forget()
            with torch.no_grad():
                return make()
        entry = self._entry
        if entry is not None and entry.key == key and entry.state.is_of(parameters):
            return entry.value
        # The memory of the old value is freed before that of the new one is taken.
        entry = self._entry = None
        with torch.no_grad():
            value = make()
        device = parameters[0].device
        if device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
            # Another thread may use it on a stream of its own.
            torch.cuda.current_stream(device).synchronize()
        self._entry = _Entry(WeightsState(parameters), key, value)
        return value

    def forget(self) -> None:
        """For parameters that are trained, where no value is asked for."""
        self._entry = None

    def __reduce__(self) -> tuple[type["WeightCache[T]"], tuple[()]]:
        return WeightCache, ()
