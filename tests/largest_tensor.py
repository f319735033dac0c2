"""
The size of the largest tensor that a computation creates: how its memory grows, without a clock.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class _Sizes(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in result if isinstance(result, (list, tuple)) else [result]:
            # oneDNN's packed weights have no storage.
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                # The storage, because an expanded tensor takes no memory.
                self.largest = max(self.largest, leaf.untyped_storage().nbytes())
        return result


def largest_tensor(compute: Callable[[], Any]) -> int:
    """The bytes of the largest tensor that a call creates, or returns from a view."""
    with _Sizes() as sizes:
        compute()
    return sizes.largest
