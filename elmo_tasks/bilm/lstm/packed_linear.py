"""
Linear layers with a weight that is packed once and used in many calls.

oneDNN computes the products, with the weight in its own layout, via private operators of torch. In float32 and
bfloat16, they are tested once per process, and `torch.nn.functional.linear` replaces them if they fail.
"""

import logging
from collections.abc import Sequence
from functools import cache

import torch
from torch.nn.functional import linear

__all__ = ["Int8Linear", "PackedLinear", "StackedLinear", "packed_linear", "type_of_results"]

logger = logging.getLogger(__name__)

# oneDNN chooses a layout for a given number of rows. Its layout for a few dozen rows was the fastest for every number
# measured (1 to 1024); its layout for one row is slow for all others.
_ROWS = 64
# int8 is faster than float32 for products with at least this many inputs. Filters over 16-unit characters have fewer.
_INT8_INPUTS = 128
# Prevents a division by zero for rows of zeros.
_TINY = 1e-30


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
    """Whether oneDNN's products are correct in this type: any torch release may change the operators."""
    try:
        # oneDNN rejects bfloat16 on old CPUs; torch itself accepts it, but is slow.
        if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.inference_mode(False), torch.device("cpu"):
            # Small integers: every type represents their products and sums exactly.
            weight = (torch.arange(37 * 71) % 3 - 1).view(37, 71).to(dtype)
            inputs, addend = (torch.arange(5 * n).remainder(5).sub(2).view(5, n).to(dtype) for n in (71, 37))
            product = linear(inputs, weight)
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
            plain = _multiply(inputs, packed, None, None)
            added = _multiply(inputs, packed, None, addend)
        if torch.equal(plain, product) and torch.equal(added, product + addend):
            return True
        reason = "wrong results"
    except (RuntimeError, AttributeError, TypeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
    logger.warning("oneDNN's products in %s do not work (%s): the biLM is slower on this CPU", dtype, reason)
    return False


class PackedLinear:
    """
    `x W^T + b` for a weight that is used many times, without gradients. On a CPU, the weight is packed once for
    oneDNN's kernels. In float32, they are 1.7 times as fast as `torch.addmm` on an AMD processor, and a row of the
    result does not depend on the number of rows. Where oneDNN is not usable, `torch.nn.functional.linear` computes the
    products. `dtype` is the type of the products, the inputs and the results.
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, dtype: torch.dtype | None = None
    ) -> None:
        weight = weight.detach().to(dtype or weight.dtype).contiguous()
        self._bias = None if bias is None else bias.detach().to(weight.dtype)
        fits = weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.bfloat16)
        self._is_packed = fits and _is_usable(weight.dtype)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS) if self._is_packed else weight

    def __call__(self, inputs: torch.Tensor, addend: torch.Tensor | None = None) -> torch.Tensor:
        """
        From inputs of shape `(n_rows, input_dim)` to products of shape `(n_rows, output_dim)`. An addend has the shape
        of the result and is allowed only without a bias.
        """
        if self._is_packed:
            return _multiply(inputs, self._weight, self._bias, addend)
        result = linear(inputs, self._weight, self._bias)
        return result if addend is None else result.add_(addend)


class Int8Linear:
    """
    `PackedLinear` with the weight rounded to 8 bits and the inputs to 7, on an x86 CPU; inputs, addends and results are
    float32. `s_x` is the largest magnitude in a row of the inputs, divided by 63; `s_w` in a row of the weight, by 127:

        x W^T + b = s_x s_w (round(x / s_x) round(W / s_w)^T) + b

    The sums are exact, and each row has its own scale, so a row of the result does not depend on the others. 8-bit
    inputs would overflow on CPUs without VNNI, which add two products in 16 bits.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        weight = weight.detach().float().contiguous()
        # Shape: (output_dim,)
        self._scale = weight.abs().amax(1).clamp_min(_TINY) / 127.0
        integers = (weight / self._scale.unsqueeze(1)).round_().to(torch.int8)
        self._weight = torch.ops.onednn.qlinear_prepack(integers, None)
        self._zero_points = torch.zeros(len(weight), dtype=torch.int32)
        self._bias = weight.new_zeros(()) if bias is None else bias.detach().float()

    def __call__(self, inputs: torch.Tensor, addend: torch.Tensor | None = None) -> torch.Tensor:
        """As in `PackedLinear`."""
        # Shape: (n_rows, 1)
        scale = inputs.abs().amax(-1, keepdim=True).clamp_min_(_TINY).div_(63.0)
        # oneDNN is fast only for unsigned integers, so 64 represents zero. The conversion, which rounds down, is fast
        # for signed ones.
        integers = (inputs / scale).add_(64.5).to(torch.int8).view(torch.uint8)
        # Shape: (n_rows, output_dim)
        products = torch.ops.onednn.qlinear_pointwise(
            integers, 1.0, 64, self._weight, self._scale, self._zero_points, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return torch.addcmul(self._bias if addend is None else addend, products, scale, out=products)


def packed_linear(weight: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype) -> PackedLinear | Int8Linear:
    """A linear layer with products of this type; float32 instead of int8 where rounding costs more than it saves."""
    if dtype == torch.int8 and weight.size(-1) >= _INT8_INPUTS:
        return Int8Linear(weight, bias)
    return PackedLinear(weight, bias, dtype=type_of_results(dtype))


def type_of_results(dtype: torch.dtype) -> torch.dtype:
    """The type of the inputs and the results of products of this type."""
    return torch.float32 if dtype == torch.int8 else dtype


class StackedLinear:
    """
    Linear layers of the same shape, computed in one kernel on CUDA, with `weights` of shape
    `(n, output_dim, input_dim)` and `biases` of shape `(n, output_dim)`.
    """

    def __init__(self, weights: torch.Tensor, biases: torch.Tensor | None = None, *, dtype: torch.dtype) -> None:
        self._layers: list[PackedLinear | Int8Linear] = []
        if weights.is_cuda:
            self._weights = weights.detach().to(dtype).contiguous().transpose(1, 2)
            self._biases = None if biases is None else biases.detach().to(dtype).unsqueeze(1)
        else:
            each_bias = [None] * len(weights) if biases is None else biases
            self._layers = [packed_linear(weight, bias, dtype) for weight, bias in zip(weights, each_bias, strict=True)]

    def __call__(
        self, inputs: torch.Tensor, addends: torch.Tensor | Sequence[torch.Tensor] | None = None
    ) -> torch.Tensor | Sequence[torch.Tensor]:
        """
        From inputs of shape `(n, n_rows, input_dim)` to `n` tensors of shape `(n_rows, output_dim)`, stacked on CUDA.
        Addends have the form of the result and are allowed only without biases.
        """
        if self._layers:
            each_addend = [None] * len(self._layers) if addends is None else addends
            return [layer(rows, addend) for layer, rows, addend in zip(self._layers, inputs, each_addend, strict=True)]
        addends = self._biases if addends is None else addends
        if addends is None:
            return torch.bmm(inputs, self._weights)
        assert isinstance(addends, torch.Tensor)
        return torch.baddbmm(addends, inputs, self._weights)
