"""
oneDNN's matrix product with a weight in a layout of its own: operators of torch that have no public name.

torch may change or remove them in any release. They are therefore tested before their first use in a process, once for
each type, and are not used where they fail: `PackedLinear` then computes with `torch.nn.functional.linear`.
"""

import logging

import torch
from torch.nn.functional import linear

__all__ = ["is_usable", "multiply", "multiply_add", "pack_weight"]

logger = logging.getLogger(__name__)

# oneDNN lays a weight out for a number of rows. What it chooses for some tens is the fastest for any number that was
# measured (1 to 1024); what it chooses for one row is slow for all others.
_ROWS = 64
# What the operators are tested with: one row, few and many; a weight that oneDNN can divide into blocks, and one that
# it cannot. Each product takes about a millisecond, which is the time in which oneDNN generates its code.
_TESTED_ROWS = (1, 5, 130)
_TESTED_SIZES = ((64, 192), (37, 71))


def pack_weight(weight: torch.Tensor) -> torch.Tensor:
    """A copy of a weight of shape `(output_dim, input_dim)` in oneDNN's layout, for the functions below only."""
    packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
    return packed


def multiply(inputs: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """`x W^T + b`, of shape `(n_rows, output_dim)`."""
    # Inductor's own operator for frozen linear layers.
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(inputs, packed, bias, "none", [], "")
    return result


def multiply_add(inputs: torch.Tensor, packed: torch.Tensor, addend: torch.Tensor) -> torch.Tensor:
    """`x W^T + a` with an addend of shape `(n_rows, output_dim)`."""
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise.binary(inputs, addend, packed, None, "add")
    return result


# For each type whether its products passed the test. Assigned by `setdefault`, which is atomic: threads that come first
# at the same time test twice and agree.
_VERDICTS: dict[torch.dtype, bool] = {}
_WARNED: dict[str, object] = {}


def is_usable(dtype: torch.dtype) -> bool:
    """
    Whether products of this type may be computed by the functions above. The first call for a type takes about 20
    milliseconds; the first failure of a process is logged as a warning.
    """
    if dtype not in (torch.float32, torch.bfloat16) or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    verdict = _VERDICTS.get(dtype)
    if verdict is None:
        verdict = _VERDICTS.setdefault(dtype, _passes(dtype))
    return verdict


def _passes(dtype: torch.dtype) -> bool:
    try:
        # oneDNN refuses bfloat16 on an old CPU; torch itself does not, and computes it slowly.
        if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        failure = _first_difference(dtype)
    except Exception as error:  # Whatever a changed operator raises, `linear` works.
        failure = f"{type(error).__name__}: {str(error).strip() or 'without a message'}".splitlines()[0]
    if failure is None:
        return True
    this = object()
    if _WARNED.setdefault("failure", this) is this:
        logger.warning(
            "the operators of oneDNN in torch %s do not pass their test, and torch.nn.functional.linear replaces them: "
            "vectors are the same up to rounding, but on a CPU the biLM can be 1.7 times slower (%s, %s). A newer "
            "elmo_tasks or another torch may help",
            torch.__version__,
            dtype,
            failure,
        )
    return False


def _first_difference(dtype: torch.dtype) -> str | None:
    """Where a product is not that of `linear`, in words; `None` if all are the same."""
    with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.device("cpu"):
        for output_dim, input_dim in _TESTED_SIZES:
            weight, bias = _numbers(output_dim, input_dim, dtype=dtype), _numbers(output_dim, dtype=dtype)
            packed = pack_weight(weight)
            for n_rows in _TESTED_ROWS:
                inputs, addend = _numbers(n_rows, input_dim, dtype=dtype), _numbers(n_rows, output_dim, dtype=dtype)
                expected = linear(inputs, weight)
                for form, found, added in (
                    ("alone", multiply(inputs, packed, None), 0),
                    ("with a bias", multiply(inputs, packed, bias), bias),
                    ("with an addend", multiply_add(inputs, packed, addend), addend),
                ):
                    # Comparing types and shapes too.
                    if found.dtype != dtype or not torch.equal(found, expected + added):
                        return f"another result {form}, of {n_rows} rows and a weight of {output_dim} x {input_dim}"
    return None


def _numbers(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """
    -1, 0 and 1 in an irregular order. Their products and sums are whole numbers up to 256, which every type holds
    exactly in whatever order and precision they are computed: any difference is an error.
    """
    index = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return ((index * index * 7919 + index * 104729) % 65521 % 3 - 1).to(dtype).reshape(shape)
