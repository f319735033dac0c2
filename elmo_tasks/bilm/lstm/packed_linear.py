"""
Linear layers with a packed weight, which stays the same from call to call.

The packed product is oneDNN's, with a weight in its own layout: two operators of torch without a public name.
They are tested once per process and type, and `torch.nn.functional.linear` replaces them if they fail.
"""

import logging
from collections.abc import Sequence
from functools import cache

import torch
from torch.nn.functional import linear

__all__ = ["PackedLinear", "StackedLinear"]

logger = logging.getLogger(__name__)

# oneDNN lays a weight out for a number of rows. What it chooses for some tens is the fastest for any number that was
# measured (1 to 1024); what it chooses for one row is slow for all others.
_ROWS = 64


def _pack(weight: torch.Tensor) -> torch.Tensor:
    packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
    return packed


def _multiply(
    inputs: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None, addend: torch.Tensor | None
) -> torch.Tensor:
    """`x W^T + b`, or `x W^T + a` with an addend of shape `(n_rows, output_dim)`."""
    if addend is None:
        result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(inputs, packed, bias, "none", [], "")
    else:
        result = torch.ops.mkldnn._linear_pointwise.binary(inputs, addend, packed, None, "add")
    return result


@cache
def _is_usable(dtype: torch.dtype) -> bool:
    """Whether oneDNN's product of this type is right: torch may change the operators in any release."""
    try:
        # oneDNN refuses bfloat16 on an old CPU; torch itself does not, and computes it slowly.
        if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.inference_mode(False), torch.device("cpu"):
            # Whole numbers: every type holds their products and sums exactly.
            weight = (torch.arange(37 * 71) % 3 - 1).view(37, 71).to(dtype)
            inputs, addend = (torch.arange(5 * n).remainder(5).sub(2).view(5, n).to(dtype) for n in (71, 37))
            product = linear(inputs, weight)
            plain = _multiply(inputs, _pack(weight), None, None)
            added = _multiply(inputs, _pack(weight), None, addend)
        if torch.equal(plain, product) and torch.equal(added, product + addend):
            return True
        reason = "wrong results"
    except (RuntimeError, AttributeError, TypeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
    logger.warning("oneDNN's products in %s do not work (%s): the biLM is slower on this CPU", dtype, reason)
    return False


class PackedLinear:
    """
    `x W^T + b` for a weight that is used many times, without gradients. On a CPU the weight is laid out once for
    oneDNN's kernels: in float32 they are 1.7 times as fast as what `torch.addmm` calls on an AMD processor, and a row
    of the result does not depend on how many rows there are. Where oneDNN is not usable, `torch.nn.functional.linear`
    computes the products. `dtype` is the type of the products, the inputs and the results.
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, dtype: torch.dtype | None = None
    ) -> None:
        weight = weight.detach().to(dtype or weight.dtype).contiguous()
        self._bias = None if bias is None else bias.detach().to(weight.dtype)
        fits = weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.bfloat16)
        self._is_packed = fits and _is_usable(weight.dtype)
        self._weight = _pack(weight) if self._is_packed else weight

    def __call__(self, inputs: torch.Tensor, addend: torch.Tensor | None = None) -> torch.Tensor:
        """
        The products, of shape `(n_rows, output_dim)`, for inputs of shape `(n_rows, input_dim)`. An addend, of the
        shape of the result, is added; only without a bias.
        """
        if self._is_packed:
            return _multiply(inputs, self._weight, self._bias, addend)
        result = linear(inputs, self._weight, self._bias)
        return result if addend is None else result.add_(addend)


class StackedLinear:
    """
    Linear layers of the same shape, each with its own weight, on CUDA in one kernel: `weights` of shape
    `(n, output_dim, input_dim)` and `biases` of shape `(n, output_dim)`.
    """

    def __init__(self, weights: torch.Tensor, biases: torch.Tensor | None = None, *, dtype: torch.dtype) -> None:
        self._layers: list[PackedLinear] = []
        if weights.is_cuda:
            self._weights = weights.detach().to(dtype).contiguous().transpose(1, 2)
            self._biases = None if biases is None else biases.detach().to(dtype).unsqueeze(1)
        else:
            each_bias = [None] * len(weights) if biases is None else biases
            self._layers = [
                PackedLinear(weight, bias, dtype=dtype) for weight, bias in zip(weights, each_bias, strict=True)
            ]

    def __call__(
        self, inputs: torch.Tensor, addends: torch.Tensor | Sequence[torch.Tensor] | None = None
    ) -> torch.Tensor | Sequence[torch.Tensor]:
        """
        For inputs of shape `(n, n_rows, input_dim)`, `n` tensors of shape `(n_rows, output_dim)`; on CUDA stacked in
        one. Addends have the form of the result; only without biases.
        """
        if self._layers:
            each_addend = [None] * len(self._layers) if addends is None else addends
            return [layer(rows, addend) for layer, rows, addend in zip(self._layers, inputs, each_addend, strict=True)]
        addends = self._biases if addends is None else addends
        if addends is None:
            return torch.bmm(inputs, self._weights)
        assert isinstance(addends, torch.Tensor)
        return torch.baddbmm(addends, inputs, self._weights)
