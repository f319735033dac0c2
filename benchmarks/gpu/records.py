"""Measurements in a file of JSON lines: those that are there already are not made again."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from elmo_tasks.version import __version__

__all__ = ["Records"]


class Records:
    """
    # Parameters

    path
        The file, to which each measurement is added as soon as it is made. `None`: they are only printed.
    minutes
        No measurement is begun after this time.
    """

    def __init__(self, path: Path | None, minutes: float) -> None:
        self._path = path
        self._deadline = time.monotonic() + 60.0 * minutes
        self._names = set()
        self.is_finished = True
        if path is not None and path.exists():
            # The last line of a run that was killed may be a part of one.
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    self._names.add(json.loads(line)["name"])
                except (ValueError, KeyError):
                    continue
            if not path.read_bytes().endswith(b"\n"):
                with path.open("a", encoding="utf-8") as file:
                    file.write("\n")

    def measure(self, name: str, make: Callable[[], dict[str, Any]]) -> None:
        """Makes a measurement, unless it is there or the time is up; after an error it is made again next time."""
        if name in self._names:
            return
        if time.monotonic() > self._deadline:
            self.is_finished = False
            return
        start = time.perf_counter()
        try:
            numbers = make()
        except (RuntimeError, ValueError) as error:
            numbers = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
            self.is_finished = False
        record = {"name": name, **numbers, "seconds": round(time.perf_counter() - start, 2)}
        print(json.dumps(record), flush=True)
        if self._path is not None and "error" not in numbers:
            when = datetime.now(UTC).isoformat(timespec="seconds")
            versions = {"elmo_tasks": __version__, "torch": torch.__version__, "when": when, "device": device_name()}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**record, **versions}) + "\n")
            self._names.add(name)

    def status(self) -> int:
        """The exit status: 0 if all is measured, 3 if the same command has more to do."""
        if not self.is_finished:
            print("not finished: run the same command again", flush=True)
        return 0 if self.is_finished else 3


def device_name() -> str:
    """The GPU, or the CPU."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
