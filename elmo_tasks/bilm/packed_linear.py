"""
Linear layers with a weight that is packed once and used in many calls.

oneDNN or fbgemm computes the products, with the weight in its own layout, via private operators of
torch, all of which are in this file. They are tested once per process, and replaced by
`torch.nn.functional.linear` if they fail.
"""

import logging
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch.nn.functional import linear

from elmo_tasks.bilm.process import limit_kernel_caches

__all__ = [
    "IS_GPU",
    "Int8Linear",
    "PackedLinear",
    "StackedLinear",
    "cpu_instructions",
    "kernel_name",
    "packed_linear",
    "type_of_results",
]

logger = logging.getLogger(__name__)

# oneDNN chooses a layout for a given number of rows. Its layout for a few dozen rows was the
# fastest for every number measured (1 to 1024); its layout for one row is slow for all others.
_ROWS = 64
# int8 is faster than float32 for products with at least this many inputs. Filters over 16-unit
# characters have fewer.
_INT8_INPUTS = 128
# Prevents a division by zero for rows of zeros.
_TINY = 1e-30

IS_GPU = {"cuda": True}
"""
Devices where launching kernels takes longer than running them, so few large ones are used. This is
a dictionary, so that a test can add the CPU.
"""

_Int8Products = Callable[[torch.Tensor], torch.Tensor]


def _multiply(
    inputs: torch.Tensor,
    packed: torch.Tensor,
    bias: torch.Tensor | None,
    addend: torch.Tensor | None,
) -> torch.Tensor:
    """`x W^T + b`, or `x W^T + a` with an addend of shape `(n_rows, output_dim)`."""
    if addend is None:
        result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            inputs, packed, bias, "none", [], ""
        )
    else:
        result = torch.ops.mkldnn._linear_pointwise.binary(inputs, addend, packed, None, "add")
    return result


def _by_fbgemm(weight: torch.Tensor, scale: torch.Tensor) -> _Int8Products:
    """
    Without VNNI, 1.1 to 1.7 times as fast as oneDNN with 64 rows, and at least 4 times with one
    row.
    """
    with warnings.catch_warnings():
        # Future releases of torch will have no quantized tensors, which are the only way to this
        # layout.
        warnings.simplefilter("ignore")
        zero_points = torch.zeros(len(weight), dtype=torch.long)
        quantized = torch._make_per_channel_quantized_tensor(weight, scale.double(), zero_points, 0)
        packed = torch.ops.quantized.linear_prepack(quantized, None)
    multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
    # 1.0 and 64 are the scale and the zero point of the inputs, as in `_by_onednn`.
    return lambda inputs: multiply(inputs, 1.0, 64, packed)


def _by_onednn(weight: torch.Tensor, scale: torch.Tensor) -> _Int8Products:
    packed = torch.ops.onednn.qlinear_prepack(weight, None)
    zero_points = torch.zeros(len(weight), dtype=torch.int32)
    # 64 represents zero, because oneDNN is fast only for unsigned integers. The comments are the
    # names of the operator's parameters.
    settings: Any = (
        1.0,  # x_scale
        64,  # x_zero_point
        packed,
        scale,
        zero_points,
        None,  # bias
        1.0,  # output_scale
        0,  # output_zero_point
        torch.float32,  # output_dtype
        "none",  # post_op_name
        [],  # post_op_args
        "",  # post_op_algorithm
    )

    def multiply(inputs: torch.Tensor) -> torch.Tensor:
        # The conversion, which rounds down, is fast for signed integers.
        integers = (inputs + 64.5).to(torch.int8).view(torch.uint8)
        products: torch.Tensor = torch.ops.onednn.qlinear_pointwise(integers, *settings)
        return products

    return multiply


@cache
def _int8_kernel() -> Callable[[torch.Tensor, torch.Tensor], _Int8Products] | None:
    """The fastest kernel that works."""
    has_vnni = cpu_instructions() in ("bf16", "vnni")
    kernels = [_by_onednn, _by_fbgemm] if has_vnni else [_by_fbgemm, _by_onednn]
    if "fbgemm" not in torch.backends.quantized.supported_engines:  # On ARM.
        kernels.remove(_by_fbgemm)
    return next((kernel for kernel in kernels if _is_usable(torch.int8, kernel)), None)


@cache
def _is_usable(dtype: torch.dtype, int8_kernel: Any = None) -> bool:
    """
    Whether a library's products are correct in this type: any torch release may change the
    operators.
    """
    limit_kernel_caches()
    try:
        # oneDNN rejects bfloat16 on old CPUs; torch itself accepts it, but is slow.
        if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        with (
            torch.no_grad(),
            torch.autocast("cpu", enabled=False),
            torch.inference_mode(False),
            torch.device("cpu"),
        ):
            if _is_correct(dtype, int8_kernel):
                return True
        reason = "wrong results"
    except (RuntimeError, AttributeError, TypeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
    name = getattr(int8_kernel, "__name__", "oneDNN").removeprefix("_by_")
    logger.warning(
        "products of %s in %s do not work (%s): others replace them", name, dtype, reason
    )
    return False


def _is_correct(dtype: torch.dtype, int8_kernel: Any) -> bool:
    """
    Whether a product has the right value, with and without an addend. Every type represents the
    products and sums of small integers exactly, and int8 nearly so.
    """
    weight = _small_integers(37, 71, dtype)
    inputs = _small_integers(5, 71, dtype)
    addend = _small_integers(5, 37, dtype)
    expected = linear(inputs, weight)
    if dtype == torch.int8:
        layer = Int8Linear(weight, kernel=int8_kernel)
        product = layer(inputs)
        sum_of_both = layer(inputs, addend)
    else:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
        product = _multiply(inputs, packed, None, None)
        sum_of_both = _multiply(inputs, packed, None, addend)
    return torch.allclose(product, expected, 0.0, 1e-4) and torch.allclose(
        sum_of_both, expected + addend, 0.0, 1e-4
    )


def _small_integers(n_rows: int, n_columns: int, dtype: torch.dtype) -> torch.Tensor:
    integers = torch.arange(n_rows * n_columns).remainder(3).sub(1)
    return integers.view(n_rows, n_columns).to(type_of_results(dtype))


def cpu_instructions() -> str:
    """
    The best instructions for products on this CPU: `bf16`, `vnni`, `avx512` (each implies the
    next), `avx2`, ...
    """
    capability = torch.backends.cpu.get_cpu_capability().lower()
    if capability != "avx512":
        return capability
    if _cpu_has("_is_avx512_bf16_supported"):
        return "bf16"
    return "vnni" if _cpu_has("_is_vnni_supported") else capability


def _cpu_has(test: str) -> bool:
    """The result of a private test of torch, which older releases lack."""
    return hasattr(torch.cpu, test) and getattr(torch.cpu, test)()


def kernel_name(device: str, precision: str) -> str:
    """
    The library that computes products of this precision, or of the one that replaces it:
    `int8 by fbgemm`.
    """
    if device != "cpu":
        return f"{precision} by torch"
    if precision == "int8":
        if (kernel := _int8_kernel()) is not None:
            return f"int8 by {kernel.__name__.removeprefix('_by_')}"
        precision = "float32"
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return f"{precision} by {'onednn' if _is_usable(dtype) else 'torch'}"


class PackedLinear:
    """
    `x W^T + b` for a weight that is used many times, without gradients. On a CPU, the weight is
    packed once for oneDNN's kernels. In float32, they are 1.7 times as fast as `torch.addmm` on an
    AMD processor, where MKL does not use AVX-512, and a row of the result does not depend on the
    number of rows. `dtype` is the type of the products, the inputs and the results.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        weight = weight.detach().to(dtype or weight.dtype).contiguous()
        self._bias = None if bias is None else bias.detach().to(weight.dtype)
        fits = weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.bfloat16)
        self._is_packed = fits and _is_usable(weight.dtype)
        self._weight = (
            torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS) if self._is_packed else weight
        )

    def __call__(self, inputs: torch.Tensor, addend: torch.Tensor | None = None) -> torch.Tensor:
        """
        From inputs of shape `(n_rows, input_dim)` to products of shape `(n_rows, output_dim)`. An
        addend has the shape of the result and is allowed only without a bias.
        """
        if self._is_packed:
            return _multiply(inputs, self._weight, self._bias, addend)
        result = linear(inputs, self._weight, self._bias)
        return result if addend is None else result.add_(addend)


class Int8Linear:
    """
    `PackedLinear` with the weight rounded to 8 bits and the inputs to 7, on an x86 CPU; inputs,
    addends and results are float32. `s_x` is the largest magnitude in a row of the inputs, divided
    by 63; `s_w` in a row of the weight, by 127:

        x W^T + b = s_x s_w (round(x / s_x) round(W / s_w)^T) + b

    The sums are exact, and each row has its own scale, so a row of the result does not depend on
    the others. 8-bit inputs would overflow on CPUs without VNNI, which add two products in 16 bits.
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, kernel: Any = None
    ) -> None:
        weight = weight.detach().float().contiguous()
        # Shape: (output_dim,)
        scale = weight.abs().amax(1).clamp_min(_TINY) / 127.0
        integers = (weight / scale.unsqueeze(1)).round_().to(torch.int8)
        kernel = kernel or _int8_kernel()
        self._multiply: _Int8Products = kernel(integers, scale)
        self._bias = weight.new_zeros(()) if bias is None else bias.detach().float()

    def __call__(self, inputs: torch.Tensor, addend: torch.Tensor | None = None) -> torch.Tensor:
        """As in `PackedLinear`."""
        # Shape: (n_rows, 1)
        scale = inputs.abs().amax(-1, keepdim=True).clamp_min_(_TINY).div_(63.0)
        # Shape: (n_rows, output_dim)
        products = self._multiply(inputs / scale)
        return torch.addcmul(
            self._bias if addend is None else addend, products, scale, out=products
        )


def packed_linear(
    weight: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype
) -> PackedLinear | Int8Linear:
    """
    A linear layer with products of this type; float32 instead of int8 where rounding costs more
    than it saves.
    """
    if dtype == torch.int8 and weight.size(-1) >= _INT8_INPUTS and _int8_kernel() is not None:
        return Int8Linear(weight, bias)
    return PackedLinear(weight, bias, dtype=type_of_results(dtype))


def type_of_results(dtype: torch.dtype) -> torch.dtype:
    """The type of the inputs and the results of products of this type."""
    return torch.float32 if dtype == torch.int8 else dtype


class StackedLinear:
    """
    Linear layers of the same shape, computed in one kernel on a GPU, with `weights` of shape
    `(n, output_dim, input_dim)` and `biases` of shape `(n, output_dim)`.
    """

    def __init__(
        self, weights: torch.Tensor, biases: torch.Tensor | None = None, *, dtype: torch.dtype
    ) -> None:
        self.input_dim = weights.size(2)
        self._layers: list[PackedLinear | Int8Linear] = []
        if IS_GPU.get(weights.device.type):
            self._weights = weights.detach().to(dtype).contiguous().transpose(1, 2)
            self._biases = None if biases is None else biases.detach().to(dtype).unsqueeze(1)
        else:
            for index, weight in enumerate(weights):
                bias = None if biases is None else biases[index]
                self._layers.append(packed_linear(weight, bias, dtype))

    def __call__(
        self, inputs: torch.Tensor, addends: torch.Tensor | Sequence[torch.Tensor] | None = None
    ) -> torch.Tensor | Sequence[torch.Tensor]:
        """
        From inputs of shape `(n, n_rows, input_dim)` to `n` tensors of shape
        `(n_rows, output_dim)`, stacked or not. Addends have the form of the result, which may
        replace them, and are allowed only without biases.
        """
        if self._layers:
            if addends is None:
                return [layer(rows) for layer, rows in zip(self._layers, inputs, strict=True)]
            return [
                layer(rows, addend)
                for layer, rows, addend in zip(self._layers, inputs, addends, strict=True)
            ]
        if isinstance(addends, torch.Tensor):
            # In place: otherwise, torch would first copy the addends to the result.
            return addends.baddbmm_(inputs, self._weights)
        if self._biases is None:
            return torch.bmm(inputs, self._weights)
        return torch.baddbmm(self._biases, inputs, self._weights)
