"""
Trains runs, each as `allennlp train` in its own process.

A run is finished when its score file exists, which is written after the training. A run is locked while it is trained,
so several commands can share the runs of a plan, on one machine or on all machines that share the folder.
"""

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch

from elmo_tasks.configs import missing_files
from elmo_tasks.files.atomic_files import locked
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.replication.paper import TASKS
from elmo_tasks.replication.plan import Plan, Run
from elmo_tasks.trainer.callbacks import learned_mixes
from elmo_tasks.version import __version__

__all__ = ["Sorted", "finished", "measure_word_senses", "sort_out", "states", "surroundings", "train_all"]
__all__ += ["word_senses"]


class Sorted(NamedTuple):
    """The scores of finished runs, the runs that are not finished, and the problems with score files by run name."""

    scores: list[dict[str, Any]]
    missing: list[Run]
    problems: dict[str, str]


def finished(run: Run) -> dict[str, Any] | None:
    """
    The scores of a run; `None` if it is not finished. Scores with different settings or data raise a `ValueError`, and
    so do scores from a different config if the folder of their training is here. Published scores come without it.
    """
    expected = {**run.inputs, **{name: run.settings.get(name) for name in ("arguments", "overrides")}}
    if (run.folder / "config.json").exists():
        expected["config"] = run.digest
    return _checked(run.file, expected)


def word_senses(plan: Plan) -> dict[str, Any] | None:
    """The scores of Table 5: see `finished`."""
    return _checked(plan.results / "wsd.json", _word_sense_inputs(plan))


def _checked(file: Path, expected: dict[str, Any]) -> dict[str, Any] | None:
    if not file.exists():
        return None
    scores: dict[str, Any] = read_json(file)
    found = {"config": scores.get("digest"), **scores.get("settings", {}), **scores["inputs"]}
    for name, value in expected.items():
        if found.get(name) != value:
            advice = "move the file away, or name a different folder with --results"
            raise ValueError(f"expected {name} {value}, got {found.get(name)}: {file}: {advice}")
    return scores


def sort_out(runs: Iterable[Run]) -> Sorted:
    found = Sorted([], [], {})
    for run in runs:
        try:
            scores = finished(run)
        except (ValueError, KeyError) as error:
            found.problems[run.name] = str(error)
            continue
        if scores is None:
            found.missing.append(run)
        else:
            found.scores.append(scores)
    return found


def states(plan: Plan, runs: Iterable[Run]) -> list[str]:
    """A line for each run with its state, and for each file that does not exist and a run would read."""
    _, missing, problems = sort_out(runs)
    named = {run.name: "interrupted" if any(run.folder.glob("run/model_state_*")) else "to run" for run in missing}
    named |= dict.fromkeys(problems, "refused")
    lost = chain.from_iterable(missing_files(run.config, plan.variables["ELMO_TASKS_DATA"]) for run in missing)
    return [
        *(f"{named.get(run.name, 'finished'):12} {run.name}" for run in runs),
        *(f"not found    {path}" for path in sorted(set(lost))),
    ]


def train_all(runs: Sequence[Run], jobs: int = 1) -> Iterator[tuple[Run, str | None]]:
    """Trains runs that are not finished; yields each run when it ends, with the reason if it failed."""
    threads = {} if jobs == 1 else {"OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // jobs))}
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
    directory, config, log = run.folder / "run", run.folder / "config.json", run.folder / "log.txt"
    run.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(run.folder))
            # `allennlp train` locks it, and goes on if the process that has started it is killed.
            with locked(directory):
                pass
        except BlockingIOError:
            return "is trained by another process"
        if finished(run):
            return None
        output = stack.enter_context(open(log, "ab"))
        config.write_text(json.dumps(run.config, indent=1), "utf-8")
        is_interrupted = any(directory.glob("model_state_*.th"))
        # AllenNLP archives the best epoch when it is interrupted.
        (directory / "model.tar.gz").unlink(missing_ok=True)
        start = time.time()
        child = subprocess.Popen(
            [sys.executable, "-m", "allennlp", "train", str(config), "-s", str(directory), "--file-friendly-logging"]
            + ["--recover" if is_interrupted else "--force"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**threads, **os.environ},
        )
        children.append(child)
        status = child.wait()
        children.remove(child)
        if status:
            lines = log.read_text("utf-8", "replace").strip().splitlines()
            return f"failed with status {status}: {lines[-1] if lines else ''} ({log})"
        _write_scores(run, directory, time.time() - start)
    return None


def _write_scores(run: Run, directory: Path, seconds: float) -> None:
    metric = TASKS[run.task].metric
    metrics = read_json(directory / "metrics.json")
    epochs = sorted(directory.glob("metrics_epoch_*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
    test = metrics.get(f"test_{metric}")
    weights = torch.load(directory / "best.th", map_location="cpu", weights_only=True)
    scores = {
        **{key: getattr(run, key) for key in ("task", "variant", "seed", "size", "training_size")},
        "dev": 100 * metrics[f"best_validation_{metric}"],
        "test": None if test is None else 100 * test,
        "epochs": [100 * read_json(path)[f"validation_{metric}"] for path in epochs],
        "mix": [mix for mix in learned_mixes(weights) if mix["weights"]],
        "settings": run.settings,
        "digest": run.digest,
        "inputs": run.inputs,
        **surroundings(),
        "seconds": round(seconds),
    }
    write_json(run.file, scores)


def surroundings() -> dict[str, Any]:
    """What computes here: the versions of the packages, the commit of a checkout, and the machine."""
    folder = Path(__file__).resolve().parent
    # An installed package may be inside an unrelated repository.
    is_checkout = (folder.parents[1] / ".git").exists()
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+changes", "--abbrev=12", "--exclude=*"]
    commit = subprocess.run(command, capture_output=True, text=True).stdout.strip() if is_checkout else None
    # The metadata of an editable installation may have an earlier version of this package.
    versions = {"elmo_tasks": __version__, **{name: version(name) for name in ("allennlp", "torch")}}
    cpus = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if sys.platform == "linux" else []
    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else (cpus or [platform.machine()])[0]
    return {"versions": versions, "commit": commit or None, "machine": f"{machine}, {os.cpu_count()} cores"}


def measure_word_senses(plan: Plan) -> str | None:
    """Measures Table 5, which has no seeds, and returns the reason if that failed."""
    plan.results.mkdir(parents=True, exist_ok=True)
    file = plan.results / "_wsd.json"
    command = [sys.executable, "-m", "allennlp", "elmo-wsd", "--data", f"{plan.variables['ELMO_TASKS_DATA']}/wsd"]
    command += ["--bilm", plan.variables["ELMO_TASKS_BILM"], "--output-file", str(file)]
    status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    if status:
        return f"failed with status {status}"
    write_json(plan.results / "wsd.json", {**read_json(file), "inputs": _word_sense_inputs(plan), **surroundings()})
    file.unlink()
    return None


def _word_sense_inputs(plan: Plan) -> dict[str, str]:
    roots = plan.variables["ELMO_TASKS_DATA"], plan.variables["ELMO_TASKS_BILM"]
    return plan.inputs([f"{roots[0]}/wsd", f"{roots[1]}/weights.hdf5"])
