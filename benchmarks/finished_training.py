"""A training of a benchmark: the same call resumes it, and one process at a time trains it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.replication.train.record import locked

__all__ = ["metrics_of", "seconds_of_epoch"]


def metrics_of(config: Path, folder: Path, overrides: Mapping[str, Any], environment: Mapping[str, str]) -> dict:
    """
    Trains with `allennlp train`, or resumes, unless it is finished. The process holds the lock of the folder, so that a
    script which is killed leaves a training that no second one disturbs. A failure ends the script with one line.

    # Parameters

    config
        The config.
    folder
        For the training: its serialization directory is `run`.
    overrides
        Of the config.
    environment
        All variables of the process.

    # Returns

    `Dict[str, Any]`
        The content of `metrics.json`.
    """
    run = folder / "run"
    try:
        with locked(folder) as lock:
            if not ((run / "metrics.json").is_file() and (run / "model.tar.gz").is_file()):
                command = [sys.executable, "-m", "allennlp", "train", str(config), "-s", str(run)]
                command += ["-o", json.dumps(overrides)]
                if run.exists():
                    command.append("--recover")
                subprocess.run(command, check=True, env=dict(environment), pass_fds=[lock.fileno()])
    except BlockingIOError as error:
        sys.exit(f"error: {folder} {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: the training in {folder} ended with status {error.returncode}: see above")
    metrics: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    return metrics


def seconds_of_epoch(folder: Path) -> float:
    """
    The median over the epochs of a finished training. AllenNLP counts from the first epoch after a resumption, so that
    only the differences between epochs are used whose count goes on.
    """
    files = sorted((folder / "run").glob("metrics_epoch_*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
    counts = [_seconds(json.loads(file.read_text())["training_duration"]) for file in files]
    found = sorted(after - before for before, after in zip([0.0, *counts], counts, strict=False) if after > before)
    return found[len(found) // 2]


def _seconds(duration: str) -> float:
    """Of `[D days, ]H:MM:SS[.f]`."""
    days, _, clock = duration.rpartition(" day")
    hours, minutes, seconds = clock.rpartition(" ")[2].split(":")
    return 86_400 * int(days or 0) + 3600 * int(hours) + 60 * int(minutes) + float(seconds)
