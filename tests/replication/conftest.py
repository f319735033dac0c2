"""Runs without training: an `allennlp` that is a shell script, and folders of runs as it leaves them."""

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.replication import Run
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.train.record import mark_finished, write_record

# Called as `allennlp train CONFIG -s FOLDER --file-friendly-logging`, and `--recover` perhaps.
_FAKE = """#!/bin/sh
echo "$@" >> "{calls}"
mkdir -p "$4"
{behaviour}
echo '{{"best_validation_accuracy": 0.5, "test_accuracy": 0.25}}' > "$4/metrics.json"
"""


class FakeAllenNLP:
    """A command for `Training`, and how it was called."""

    def __init__(self, folder: Path) -> None:
        self.command = ("/bin/sh", str(folder / "allennlp"))
        self._calls = folder / "calls"
        self.behaves("")

    def behaves(self, script: str) -> None:
        """Lines of the script before it writes its scores; `$2` is the config and `$4` the serialization directory."""
        Path(self.command[1]).write_text(_FAKE.format(calls=self._calls, behaviour=script))

    def calls(self) -> list[list[str]]:
        return [line.split() for line in self._calls.read_text().splitlines()] if self._calls.exists() else []


@pytest.fixture
def allennlp(tmp_path: Path) -> FakeAllenNLP:
    return FakeAllenNLP(tmp_path)


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """Makes a run: `make_run(task="snli", variant="both", seed=1, size=None, value=1)`; another value, another run."""

    def make(task: str = "snli", variant: str = "both", seed: int = 1, size: int | None = None, value: int = 1) -> Run:
        identity = {"task": task, "variant": variant, "seed": seed, "config": {"trainer": {"num_epochs": value}}}
        about: dict[str, Any] = {"data": f"data of {task}", "bilm": "a biLM", "arguments": {}, "overrides": {}}
        return Run(task, variant, seed, size, tmp_path / "results", {"random_seed": seed}, identity, about)

    return make


@pytest.fixture
def finish() -> Callable[..., Run]:
    """Writes what a finished run leaves: `finish(run, dev, test)`, scores from 0 to 1."""

    def finished(run: Run, dev: float = 0.5, test: float | None = 0.25) -> Run:
        run.serialization_dir.mkdir(parents=True)
        write_record(run)
        metric = TASKS[run.task].metric
        metrics = {f"best_validation_{metric}": dev} | ({} if test is None else {f"test_{metric}": test})
        (run.serialization_dir / "metrics.json").write_text(json.dumps(metrics))
        mark_finished(run.folder)
        return run

    return finished


@pytest.fixture
def write_archive() -> Callable[[Path, bytes], None]:
    """Writes a `model.tar.gz` with some `weights.th`."""

    def write(path: Path, weights: bytes) -> None:
        member = tarfile.TarInfo("weights.th")
        member.size = len(weights)
        # Without the time, so that the same bytes are damaged on every day.
        with gzip.GzipFile(path, "wb", mtime=0) as file, tarfile.open(fileobj=file, mode="w") as archive:
            archive.addfile(member, io.BytesIO(weights))

    return write
