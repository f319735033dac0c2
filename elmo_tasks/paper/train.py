"""
Trains runs, each as `allennlp train` in its own process.

A run is finished when its score file exists, which is written after the training. A run is locked
while it is trained, so several commands can share the runs of a plan, on one machine or on all
machines that share the folder.
"""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from elmo_tasks.configs import missing_files
from elmo_tasks.files.atomic_files import locked
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.paper.numbers import TASKS
from elmo_tasks.paper.plan import Plan, Run
from elmo_tasks.trainer.callbacks import learned_mixes
from elmo_tasks.version import __version__

__all__ = [
    "SortedRuns",
    "best_epoch",
    "checked_scores",
    "finished",
    "sort_out",
    "states",
    "surroundings",
    "train_all",
]


class SortedRuns(NamedTuple):
    """
    The scores of finished runs, the runs that are not finished, and the problems with score files
    by run name.
    """

    scores: list[dict[str, Any]]
    missing: list[Run]
    problems: dict[str, str]


def finished(run: Run) -> dict[str, Any] | None:
    """
    The scores of a run; `None` if it is not finished. Scores with different settings or data raise
    a `ValueError`, and so do scores from a different config if the folder of their training is
    here: published scores come without it. So does a run that `run.patience` did not end.
    """
    expected: dict[str, Any] = {**run.inputs}
    for name in ("arguments", "overrides"):
        expected[name] = run.settings.get(name)
    if (run.folder / "config.json").exists():
        expected["config"] = run.digest
    scores = checked_scores(run.file, expected)
    if scores is not None and run.patience is not None:
        _check_end(run.file, scores["epochs"], run.patience)
    return scores


def checked_scores(file: Path, expected: dict[str, Any]) -> dict[str, Any] | None:
    """The content of a score file; `None` if it does not exist. Other values are a `ValueError`."""
    if not file.exists():
        return None
    scores: dict[str, Any] = read_json(file)
    recorded = {"config": scores.get("digest"), **scores.get("settings", {}), **scores["inputs"]}
    for name, value in expected.items():
        if recorded.get(name) != value:
            advice = "move the file away, or name a different folder with --results"
            got = recorded.get(name)
            raise ValueError(f"expected {name} {value}, got {got}: {file}: {advice}")
    return scores


def best_epoch(epochs: Sequence[float]) -> int:
    """The first epoch with the best score, counted from 1: the one that is tested."""
    return 1 + list(epochs).index(max(epochs))


def _check_end(file: Path, epochs: Sequence[float], patience: int) -> None:
    best = best_epoch(epochs)
    n_after = len(epochs) - best
    if n_after < patience:
        raise ValueError(
            f"expected {patience} epochs without a better score at the end, got {n_after} after "
            f"epoch {best}: {file}: it was cut by the number of epochs, so raise trainer.num_epochs"
        )


def sort_out(runs: Iterable[Run]) -> SortedRuns:
    """Reads the score files of the runs."""
    sorted_runs = SortedRuns(scores=[], missing=[], problems={})
    for run in runs:
        try:
            scores = finished(run)
        except (ValueError, KeyError) as error:
            sorted_runs.problems[run.name] = str(error)
            continue
        if scores is None:
            sorted_runs.missing.append(run)
        else:
            sorted_runs.scores.append(scores)
    return sorted_runs


def states(plan: Plan, runs: Iterable[Run]) -> list[str]:
    """A line for each run with its state, and for each missing file that a run would read."""
    _, missing, problems = sort_out(runs)
    states_by_name = dict.fromkeys(problems, "refused")
    missing_data = set()
    for run in missing:
        was_started = any(run.folder.glob("run/model_state_*"))
        states_by_name[run.name] = "interrupted" if was_started else "to run"
        missing_data |= set(missing_files(run.config, plan.variables["ELMO_TASKS_DATA"]))
    lines = []
    for run in runs:
        state = states_by_name.get(run.name, "finished")
        lines.append(f"{state:12} {run.name}")
    for path in sorted(missing_data):
        lines.append(f"{'not found':12} {path}")
    return lines


def train_all(runs: Sequence[Run], jobs: int = 1) -> Iterator[tuple[Run, str | None]]:
    """Trains unfinished runs; yields each run when it ends, with the reason if it failed."""
    threads = {}
    if jobs > 1:
        threads = {"OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // jobs))}
    children: list[subprocess.Popen] = []
    with ThreadPoolExecutor(jobs) as pool:
        ends = {pool.submit(_train, run, threads, children): run for run in runs}
        try:
            for end in as_completed(ends):
                yield ends[end], end.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.terminate()


def _train(run: Run, threads: dict[str, str], children: list[subprocess.Popen]) -> str | None:
    directory = run.folder / "run"
    config = run.folder / "config.json"
    log = run.folder / "log.txt"
    run.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(run.folder))
            # `allennlp train` locks it, and goes on if the process that has started it is killed.
            with locked(directory):
                pass
        except BlockingIOError:
            return "is trained by another process"
        if run.file.exists():
            return None
        output = stack.enter_context(open(log, "ab"))
        config.write_text(json.dumps(run.config, indent=1), "utf-8")
        is_interrupted = any(directory.glob("model_state_*.th"))
        # AllenNLP archives the best epoch when it is interrupted.
        (directory / "model.tar.gz").unlink(missing_ok=True)
        command = [sys.executable, "-m", "allennlp", "train", str(config), "-s", str(directory)]
        command += ["--file-friendly-logging", "--recover" if is_interrupted else "--force"]
        environment = {**threads, **os.environ}
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
        )
        children.append(child)
        status = child.wait()
        children.remove(child)
        if status:
            return f"failed with status {status}: {_last_line(log)} ({log})"
        _write_scores(run, directory)
    return None


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def _write_scores(run: Run, directory: Path) -> None:
    metric = TASKS[run.task].metric
    metrics = read_json(directory / "metrics.json")
    test = metrics.get(f"test_{metric}")
    n_epochs = len(list(directory.glob("metrics_epoch_*.json")))
    epochs = []
    durations = []
    for number in range(n_epochs):
        epoch_metrics = read_json(directory / f"metrics_epoch_{number}.json")
        epochs.append(100 * epoch_metrics[f"validation_{metric}"])
        durations.append(epoch_metrics["training_duration"])
    weights = torch.load(directory / "best.th", map_location="cpu", weights_only=True)
    scores = {
        "task": run.task,
        "variant": run.variant,
        "seed": run.seed,
        "size": run.size,
        "training_size": run.training_size,
        "dev": 100 * metrics[f"best_validation_{metric}"],
        "test": None if test is None else 100 * test,
        "epochs": epochs,
        "mix": [mix for mix in learned_mixes(weights) if mix["weights"]],
        "settings": run.settings,
        "digest": run.digest,
        "inputs": run.inputs,
        **surroundings(),
        "seconds": round(_training_seconds(durations)),
    }
    write_json(run.file, scores)


def _training_seconds(durations: Sequence[str]) -> float:
    """The time of all epochs; AllenNLP's `training_duration` starts again with `--recover`."""
    since_start = pd.to_timedelta(pd.Series(durations)).dt.total_seconds()
    of_epoch = since_start.diff()
    return of_epoch.where(of_epoch > 0, since_start).sum()


def surroundings() -> dict[str, Any]:
    """The versions of the packages, the commit of a checkout, and the machine."""
    # The metadata of an editable installation may have an earlier version of this package.
    versions = {"elmo_tasks": __version__}
    for name in ("allennlp", "torch"):
        versions[name] = version(name)
    machine = f"{_processor()}, {os.cpu_count()} cores"
    return {"versions": versions, "commit": _commit(), "machine": machine}


def _commit() -> str | None:
    folder = Path(__file__).resolve().parent
    # An installed package may be inside an unrelated repository.
    if not (folder.parents[1] / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+changes"]
    command += ["--abbrev=12", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None


def _processor() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    if sys.platform == "linux":
        models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        if models:
            return str(models[0])
    return platform.machine()
