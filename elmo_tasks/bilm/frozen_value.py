"""Values computed from weights, and the detection of changed weights."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import torch

__all__ = ["FrozenValue", "WeightsState"]

T = TypeVar("T")


class WeightsState:
    """
    The state of some weights at one moment, without a copy of them. It detects weights that are
    replaced, moved, or changed in place, also by loading; it misses changes through `tensor.data`,
    by torch's fused optimizers, or to tensors created in inference mode. A copied or pickled state
    matches no weights.
    """

    def __init__(self, weights: Iterable[torch.Tensor] = ()) -> None:
        # Aliases: while they exist, no other tensor can get the same address.
        self._held = [weight.detach() for weight in weights]
        self._state = _state(self._held)

    def is_of(self, weights: Iterable[torch.Tensor]) -> bool:
        """Whether these weights are the same tensors, unchanged."""
        return _state(weights) == self._state

    def __reduce__(self) -> tuple[type["WeightsState"], tuple[()]]:
        return WeightsState, ()


def _state(weights: Iterable[torch.Tensor]) -> list[tuple[object, ...]]:
    return [_state_of_tensor(weight) for weight in weights]


def _state_of_tensor(weight: torch.Tensor) -> tuple[object, ...]:
    """The address and layout of a tensor, and how often it was changed in place."""
    version = None if weight.is_inference() else weight._version
    return weight.data_ptr(), version, weight.shape, weight.stride(), weight.dtype


class FrozenValue(Generic[T]):
    """
    A value computed from frozen weights, and recomputed when they change. No value is kept for
    trainable weights, because optimizers change them in ways that `WeightsState` does not detect. A
    copy, pickled or not, starts empty.
    """

    def __init__(self) -> None:
        # One attribute, so a thread never sees half an entry; two threads may both compute the
        # value.
        self._entry: tuple[WeightsState, Any, T] | None = None

    def __call__(self, weights: Sequence[torch.Tensor], key: Any, make: Callable[[], T]) -> T:
        """The value for these weights and this key: the stored one, or the result of `make`."""
        if any(weight.requires_grad for weight in weights):
            self.forget()
            with torch.no_grad():
                return make()
        entry = self._entry
        if entry is not None and entry[1] == key and entry[0].is_of(weights):
            return entry[2]
        # The memory of the old value is freed before the new one is made.
        entry = None
        self._entry = None
        with torch.no_grad():
            value = make()
        self._entry = (WeightsState(weights), key, value)
        return value

    def forget(self) -> None:
        """Drops the value; for callers that train the weights and need no value."""
        self._entry = None

    def __reduce__(self) -> tuple[type["FrozenValue[T]"], tuple[()]]:
        return FrozenValue, ()
