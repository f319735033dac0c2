"""Layers on the device against those on the CPU in float32: every size and precision, and batches of every kind."""

from collections.abc import Mapping
from functools import lru_cache, partial

import torch

from elmo_tasks.bilm.lstm.precision import supports_bf16
from elmo_tasks.gpu_check.batches import (
    Precision,
    layers_of,
    lowest_cosine,
    make_bilm,
    plain_path,
    ragged,
    relative_difference,
    sentences,
)
from elmo_tasks.gpu_check.part import NotApplicable, Numbers, Part, PartFailed, Setting

__all__ = ["layers_parts"]

# A word of float32 may be this share of the largest number away, and a vector of fewer digits have this cosine.
_LARGEST_DIFFERENCE = 1e-4
_LOWEST_COSINES: Mapping[str, float] = {"tf32": 0.999, "bf16": 0.995}


def layers_parts(setting: Setting) -> list[Part]:
    """A part for each size and precision, and one for the plain path of each size."""
    precisions: tuple[Precision, ...] = ("float32", "tf32", "bf16")
    parts = []
    # The CPU computes the layers of one size after the other.
    for size in setting.sizes:
        for precision in precisions:
            parts.append(Part(f"layers, {size}, {precision}", partial(_check, size=size, precision=precision)))
        parts.append(Part(f"layers, {size}, plain path", partial(_check_plainly, size=size)))
    return parts


def _check_plainly(setting: Setting, size: str) -> Numbers:
    setting.require_cuda("CUDA graphs and Triton's kernels")
    with plain_path():
        return _check(setting, size, "float32")


def _check(setting: Setting, size: str, precision: Precision) -> Numbers:
    if precision == "bf16" and not supports_bf16(setting.device):
        raise NotApplicable(f"{setting.device} has no instructions for bfloat16")
    if precision == "tf32":
        setting.require_cuda("products of TF32")
        if torch.cuda.get_device_capability(setting.device) < (8, 0):
            raise NotApplicable(f"{setting.device} has no instructions for TF32")
    bilm = make_bilm(size, precision=precision).to(setting.device)
    numbers: Numbers = {}
    reasons = []
    for case, (batch, expected) in _cases(size, setting.is_quick, setting.is_cuda).items():
        # Twice: the second time graphs are only replayed.
        for _ in range(2):
            found = layers_of(bilm, batch)
        difference, cosine = relative_difference(found, expected), lowest_cosine(found, expected)
        numbers[case] = {"largest difference": difference, "lowest cosine": cosine}
        lowest = _LOWEST_COSINES.get(precision)
        # Also where they are not numbers.
        if lowest is None and not difference <= _LARGEST_DIFFERENCE:
            reasons.append(f"{case}: the layers differ by {difference:.1e}, and may by {_LARGEST_DIFFERENCE:.0e}")
        if lowest is not None and not cosine >= lowest:
            reasons.append(f"{case}: a vector has the cosine {cosine:.5f} to the CPU's, and must have {lowest}")
    if reasons:
        raise PartFailed("; ".join(reasons), numbers)
    return numbers


@lru_cache(maxsize=1)
def _cases(size: str, is_quick: bool, is_cuda: bool) -> dict[str, tuple[list[list[str]], torch.Tensor]]:
    """Batches of every kind, with the layers that a CPU computes; kept for the precisions of a size."""
    n_long = (5000 if is_cuda else 300) if size == "small" or not is_quick else 500
    n_sentences, n_short = 16 if is_quick else 64, 600 if is_cuda else 100
    longest = 40
    if size == "tiny":
        n_sentences, longest, n_long, n_short = 4, 9, 12, 20
    batches = {
        "ragged sentences": ragged(n_sentences, longest),
        "one word": sentences([1], seed=1),
        "a long sentence": sentences([n_long], seed=2),
        "many short sentences": sentences([2] * n_short, seed=3),
        "empty sentences": sentences([0, 0]),
    }
    bilm = make_bilm(size)
    return {case: (batch, layers_of(bilm, batch)) for case, batch in batches.items()}
