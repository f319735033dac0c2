"""Which precision of the biLM's products is the fastest."""

import logging
from functools import cache
from typing import Literal

import torch

from elmo_tasks.bilm.lstm.triton_steps import has_triton_steps
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.packed_linear import cpu_instructions

__all__ = ["Precision", "has_paper_size", "precision_of_training", "precision_on"]

Precision = Literal["float32", "bf16", "int8", "auto"]
"""The precision of the biLM's matrix products: see `Bilm`."""

logger = logging.getLogger(__name__)


# Tokens per second as multiples of float32's, with one sentence and in batches of 64, by
# instructions and whether the biLM has the size of the paper: docs/internals/engine.md. Those of
# CPUs without bf16 were measured with ONEDNN_MAX_CPU_ISA, FBGEMM_ENABLE_INSTRUCTIONS and
# ATEN_CPU_CAPABILITY on one that has it, or on an AMD EPYC. Other processors have no numbers.
_SPEEDS: dict[tuple[str, bool], dict[Precision, tuple[float, float]]] = {
    ("bf16", False): {"bf16": (0.66, 1.55), "int8": (0.58, 1.62)},
    ("bf16", True): {"bf16": (0.98, 2.62), "int8": (1.15, 2.60)},
    ("vnni", False): {"bf16": (0.5, 0.5), "int8": (0.44, 1.6)},
    ("vnni", True): {"bf16": (0.7, 0.5), "int8": (2.1, 2.7)},
    ("avx512", False): {"bf16": (0.6, 0.5), "int8": (0.52, 1.3)},
    ("avx512", True): {"bf16": (0.6, 0.5), "int8": (2.0, 1.3)},
    ("avx2", False): {"bf16": (0.4, 0.2), "int8": (0.78, 1.3)},
    ("avx2", True): {"bf16": (0.9, 0.2), "int8": (2.2, 1.7)},
    # In batches of 2,048 and 16,384 words.
    ("gpu", False): {"bf16": (0.97, 1.45)},
    ("gpu", True): {"bf16": (1.87, 3.12)},
}


def has_paper_size(options: BilmOptions) -> bool:
    """Whether a biLM is about as large as the paper's: the second part of a key of `_SPEEDS`."""
    return options.projection_dim >= 256


@cache
def precision_on(device: torch.device, is_large: bool, precision: Precision) -> Precision:
    """
    The precision, or for `"auto"` the fastest one: all have a mean cosine of at least 0.999 to the
    vectors in float32. If float32 is faster, one warning is logged. `is_large`: see
    `has_paper_size`.
    """
    speeds = _SPEEDS.get((_instructions(device), is_large), {})
    # The product of both speeds is compared, which has the order of their geometric mean.
    speeds_of_both: dict[Precision, float] = {"float32": 1.0}
    for name, (one_sentence, batches) in speeds.items():
        speeds_of_both[name] = one_sentence * batches
    if precision == "auto":
        return max(speeds_of_both, key=speeds_of_both.__getitem__)
    if speeds_of_both.get(precision, 1.0) < 1.0:
        logger.warning(
            "%s is slower than float32 on this processor: use float32 or 'auto'", precision
        )
    return precision


def precision_of_training(device: torch.device, is_large: bool) -> Literal["float32", "bf16"]:
    """
    The faster precision for training a biLM: bf16 on a CPU with instructions for it, and on a GPU
    at the size of the paper. At the small size, an H200 trained 239,000 words per second in
    float32, and 150,000 in bf16.
    """
    if device.type == "cpu":
        is_fast = cpu_instructions() == "bf16"
    else:
        is_fast = is_large and _is_fast_in_bf16(device)
    return "bf16" if is_fast else "float32"


def _instructions(device: torch.device) -> str:
    """A key of `_SPEEDS`, or the type of a device that was not measured."""
    if device.type == "cpu":
        return cpu_instructions()
    return "gpu" if _is_fast_in_bf16(device) else device.type


def _is_fast_in_bf16(device: torch.device) -> bool:
    """
    Whether a GPU has instructions for bfloat16, and steps of one kernel: with torch's operators,
    launching kernels for the conversions takes longer than the products.
    """
    return (
        device.type == "cuda"
        and torch.cuda.get_device_capability(device) >= (8, 0)
        and has_triton_steps(device)
    )
