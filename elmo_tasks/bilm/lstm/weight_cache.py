"""Values that are computed from frozen parameters, kept until the parameters change."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch

__all__ = ["WeightCache"]

T = TypeVar("T")


class WeightCache(Generic[T]):
    """
    What is made of frozen parameters for fast use, made again when they change; of parameters that are trained nothing
    is kept. Changes by way of `parameter.data` are not seen: what trains and averages parameters makes them.

    A copy, pickled or not, begins with nothing prepared.
    """

    def __init__(self) -> None:
        self._made_of: list[tuple[torch.Tensor, int | None]] = []
        self._key: Any = None
        self._value: T | None = None

    def __call__(self, parameters: Sequence[torch.Tensor], key: Any, make: Callable[[], T]) -> T:
        """The value that `make` returned for these parameters and this key, or now returns."""
        if any(parameter.requires_grad for parameter in parameters):
            with torch.no_grad():
                return make()
        # No value: nothing was made yet, or making it failed.
        if self._value is None or self._key != key or not self._is_made_of(parameters):
            self._value = None  # Its memory goes before that of the new one is taken.
            with torch.no_grad():
                self._value = make()
            # Holding the tensors keeps their addresses from being given to others.
            self._made_of = [(parameter.detach(), _version(parameter)) for parameter in parameters]
            self._key = key
        return self._value

    def _is_made_of(self, parameters: Sequence[torch.Tensor]) -> bool:
        return len(parameters) == len(self._made_of) and all(
            parameter.data_ptr() == old.data_ptr()
            and _version(parameter) == version
            and parameter.dtype == old.dtype
            and parameter.device == old.device
            for parameter, (old, version) in zip(parameters, self._made_of, strict=True)
        )

    def __reduce__(self) -> tuple[type["WeightCache[T]"], tuple[()]]:
        return WeightCache, ()


def _version(tensor: torch.Tensor) -> int | None:
    """How often a tensor was changed in place; those that are made in inference mode do not count."""
    return None if tensor.is_inference() else tensor._version
