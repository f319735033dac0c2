"""`python -m elmo_tasks check-gpu`: arguments, the lines that it prints, and its report."""

import argparse
import sys
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_tasks.files.sealed_json import write_sealed
from elmo_tasks.printable import printable

if TYPE_CHECKING:
    from elmo_tasks.gpu_check.part import Result, Setting

__all__ = ["DESCRIPTION", "add_arguments", "check_gpu"]

DESCRIPTION = "Check that the biLM computes on a GPU what it computes on the CPU, and measure its speed."

# The number changes when a reader of older reports would misread newer ones.
_FORMAT = 1
_NO_CUDA = 2
_SIZES = ("tiny", "small", "original")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to a parser."""
    parser.add_argument("--quick", action="store_true", help="the small size only, fewer batches: under a minute")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write what was measured into a JSON file")
    parser.add_argument(
        "--device", default="cuda", help="cuda (default), cuda:1, ...; cpu runs the parts that need no GPU"
    )
    parser.add_argument("--sizes", nargs="+", choices=_SIZES, help=argparse.SUPPRESS)


def check_gpu(arguments: argparse.Namespace) -> int:
    """
    Prints a line for each part, and writes the report.

    # Returns

    `int`
        The exit status: 0; 1 if a part failed; 2 if there is no CUDA.

    # Raises

    `ValueError`
        If there is no such device, or the report cannot be written because of its name.
    `OSError`
        If the report cannot be written.
    """
    # Not before: it loads torch.
    from elmo_tasks.gpu_check.device import usable_device, why_no_cuda
    from elmo_tasks.gpu_check.part import Setting

    _check_report(arguments.report)
    if arguments.device.partition(":")[0] == "cuda" and (reason := why_no_cuda()) is not None:
        print(f"error: {printable(reason)}; --device cpu runs the parts that need no GPU", file=sys.stderr)
        return _NO_CUDA
    sizes = arguments.sizes or (["small"] if arguments.quick else ["small", "original"])
    setting = Setting(usable_device(arguments.device), sizes, arguments.quick)
    started, start = datetime.now(UTC), time.perf_counter()
    results = _run_all(setting)
    counts = Counter(result.verdict for result in results)
    seconds = time.perf_counter() - start
    print(
        f"{counts['passed']} parts passed, {counts['failed']} failed, {counts['not applicable']} are not applicable; "
        f"{seconds:.0f} s"
    )
    if arguments.report is not None:
        _write_report(arguments.report, setting, started, seconds, results)
    return 1 if counts["failed"] else 0


def _run_all(setting: "Setting") -> list["Result"]:
    """Runs all parts, and prints a line for each."""
    import torch

    from elmo_tasks.gpu_check.device import describe
    from elmo_tasks.gpu_check.gradients import gradient_parts
    from elmo_tasks.gpu_check.graphs import graph_parts
    from elmo_tasks.gpu_check.layers import layers_parts
    from elmo_tasks.gpu_check.memory import memory_parts
    from elmo_tasks.gpu_check.part import Part, run_parts
    from elmo_tasks.gpu_check.speed import speed_parts

    if setting.is_cuda:
        torch.cuda.set_device(setting.device)
    parts = [
        Part("versions and device", describe),
        *graph_parts(),
        *layers_parts(setting),
        *gradient_parts(setting),
        *memory_parts(),
        *speed_parts(setting),
    ]
    results = []
    try:
        for result in run_parts(parts, setting):
            results.append(result)
            print(printable(_line(result)), flush=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted after {len(results)} of {len(parts)} parts; no report is written"
        ) from None
    return results


def _write_report(path: Path, setting: "Setting", started: datetime, seconds: float, results: list["Result"]) -> None:
    content = {
        "format": _FORMAT,
        "command": "check-gpu",
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "device": str(setting.device),
        "quick": setting.is_quick,
        "sizes": list(setting.sizes),
        "verdict": "failed" if any(result.verdict == "failed" for result in results) else "passed",
        "parts": [_as_json(asdict(result)) for result in results],
    }
    write_sealed(path, content)
    print(printable(f"wrote {path}"))


def _check_report(path: Path | None) -> None:
    """Before minutes of work, not after them."""
    if path is None:
        return
    if path.suffix != ".json":
        raise ValueError(f"the report must have a name that ends with .json, but is {path}")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path.absolute().parent} must be a folder, for the report, but is not: make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a file, for the report, but is a folder: name a file in it")


def _line(result: "Result") -> str:
    numbers = result.numbers
    if result.verdict != "passed":
        shown = result.reason
    elif isinstance(packages := numbers.get("packages"), dict):
        shown = f"{numbers.get('name', numbers['device'])}, torch {packages['torch']}, Python {numbers['python']}"
    else:
        shown = ", ".join(f"{key} {_shown(value)}" for key, value in numbers.items() if not isinstance(value, dict))
        cases = [value for value in numbers.values() if isinstance(value, dict) and "largest difference" in value]
        if cases:
            shown = f"largest difference {_shown(max(case['largest difference'] for case in cases))}"
            shown += f", lowest cosine {_shown(min(case['lowest cosine'] for case in cases))}"
    return f"{result.verdict:14}  {result.name:32}  {result.seconds:6.1f} s  {shown}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5f}" if 0.9 < value < 1.1 else f"{value:.1e}" if abs(value) < 0.01 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _as_json(value: object) -> object:
    """JSON has no NaN and no infinity: they become strings."""
    if isinstance(value, dict):
        return {key: _as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, float) and value - value != 0.0:
        return str(value)
    return value
