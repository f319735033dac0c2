"""Parts of the check: what they are given, what they return, and how they are run one after another."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.printable import one_line

__all__ = ["SIZES", "NotApplicable", "Numbers", "Part", "PartFailed", "Result", "Setting", "run_parts"]

Numbers = dict[str, Any]
"""What a part has measured, as JSON takes it."""

_ORIGINAL = BilmOptions()
SIZES = {
    # For tests of the check itself.
    "tiny": BilmOptions(cell_dim=16, projection_dim=8, character_dim=4, filters=((1, 4), (3, 8)), n_highway=1),
    "small": BilmOptions(cell_dim=1024, projection_dim=128, filters=_ORIGINAL.filters[:-1], n_highway=1),
    "original": _ORIGINAL,
}
"""Shapes of biLMs: the small one of this package and of the authors, and the paper's."""


@dataclass(frozen=True)
class Setting:
    """
    # Parameters

    device
        The device to be checked.
    sizes
        Keys of `SIZES`, the smallest first.
    is_quick
        Whether to take fewer and shorter batches.
    """

    device: torch.device
    sizes: Sequence[str] = ("small", "original")
    is_quick: bool = False

    @property
    def is_cuda(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.type == "cuda"

    @property
    def is_tiny(self) -> bool:
        """Whether the check itself is tested."""
        return self.sizes[0] == "tiny"

    def require_cuda(self, what: str) -> None:
        """Ends a part that is for GPUs only."""
        if not self.is_cuda:
            raise NotApplicable(f"{what} need CUDA, but the device is {self.device}")

    def synchronize(self) -> None:
        """Waits for the GPU."""
        if self.is_cuda:
            torch.cuda.synchronize(self.device)


class PartFailed(Exception):
    """
    A part that found something wrong.

    # Parameters

    reason
        What, with the numbers that show it.
    numbers
        Whatever was measured before.
    """

    def __init__(self, reason: str, numbers: Numbers | None = None) -> None:
        super().__init__(reason)
        self.numbers = numbers or {}


class NotApplicable(Exception):
    """A part that makes no sense on this device; the message says why."""


@dataclass(frozen=True)
class Part:
    """
    # Parameters

    name
        Its name in the report.
    run
        Returns what was measured, or raises `PartFailed` or `NotApplicable`.
    """

    name: str
    run: Callable[[Setting], Numbers]


@dataclass(frozen=True)
class Result:
    """
    The outcome of a part.

    # Parameters

    name
        Of the part.
    verdict
        `"passed"`, `"failed"` or `"not applicable"`.
    reason
        Why it failed or is not applicable; empty if it passed.
    seconds
        Its time.
    numbers
        What it measured.
    """

    name: str
    verdict: Literal["passed", "failed", "not applicable"]
    reason: str
    seconds: float
    numbers: Numbers = field(default_factory=dict)


def run_parts(parts: Sequence[Part], setting: Setting) -> Iterator[Result]:
    """The results of parts, each as soon as it is there. A part that raises anything fails; the others follow."""
    for part in parts:
        start = time.perf_counter()
        verdict: Literal["passed", "failed", "not applicable"] = "passed"
        reason, numbers = "", {}
        try:
            numbers = part.run(setting)
            setting.synchronize()
        except NotApplicable as found:
            verdict, reason = "not applicable", one_line(found)
        except PartFailed as failed:
            verdict, reason, numbers = "failed", one_line(failed), failed.numbers
        except Exception as error:
            verdict, reason = "failed", f"{type(error).__name__}: {one_line(error) or 'without a message'}"
        if setting.is_cuda:
            _free()
        yield Result(part.name, verdict, reason, round(time.perf_counter() - start, 3), numbers)


def _free() -> None:
    """A part does not pay for the memory of the one before. After some errors of CUDA nothing works any more."""
    try:
        torch.cuda.empty_cache()
    except RuntimeError:
        return
