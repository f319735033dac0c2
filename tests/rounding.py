"""Products of matrices that are rounded differently for each shape, as on other processors."""

from functools import lru_cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_PRODUCTS = {"addmm", "baddbmm", "bmm", "einsum", "linear", "_linear_pointwise", "matmul", "mm"}


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _noise(shape: torch.Size) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return 1 + 1e-6 * (torch.rand(shape, generator=generator) - 0.5)


class NoisyProducts(TorchFunctionMode):
    """
    Changes products in float32 by up to half a millionth: equal shapes equally, and different
    shapes differently.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        # `_linear_pointwise.binary`, `__matmul__`
        name = getattr(function, "__name__", "").partition(".")[0].replace("__", "")
        if name in _PRODUCTS and result.dtype == torch.float32 and result.device.type == "cpu":
            return result * _noise(result.shape)
        return result
