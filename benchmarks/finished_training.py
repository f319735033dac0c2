"""A training of a benchmark: the same call resumes it, and one process at a time trains it."""

import json
import re
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.replication.train.record import locked

__all__ = ["metrics_of", "seconds_of_epoch"]


def metrics_of(
    config: Path,
    folder: Path,
    overrides: Mapping[str, Any],
    environment: Mapping[str, str],
    identity: Mapping[str, Any],
) -> dict[str, Any]:
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
    identity
        What the scores are of, as JSON has it: a folder with another one is an error.

    # Returns

    `Dict[str, Any]`
        The content of `metrics.json`.
    """
    run = folder / "run"
    try:
        with locked(folder) as lock:
            record = folder / "identity.json"
            if record.exists() and json.loads(record.read_text()) != identity:
                sys.exit(f"error: {folder} has another training: {record.read_text()}; remove it, or name another")
            with atomic_file(record) as temporary:
                temporary.write_text(json.dumps(identity))
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
    """The median over the epochs of a finished training, with validation, whatever interrupted it: from its log."""
    log = (folder / "run" / "out.log").read_text()
    return statistics.median(map(_seconds, re.findall(r"Epoch duration: (.+)", log)))


def _seconds(duration: str) -> float:
    """Of `[D days, ]H:MM:SS[.f]`."""
    days, _, clock = duration.rpartition(" day")
    hours, minutes, seconds = clock.rpartition(" ")[2].split(":")
    return 86_400 * int(days or 0) + 3600 * int(hours) + 60 * int(minutes) + float(seconds)
