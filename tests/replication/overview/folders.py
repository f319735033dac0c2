"""Folders of results, with runs as `allennlp elmo-tables` writes them."""

import json
import shutil
from pathlib import Path
from typing import Any

from elmo_tasks.files.sealed_json import write_sealed
from elmo_tasks.replication import TASKS
from elmo_tasks.replication.evidence.run_file import place_of
from tests.paths import EARLIER_RESULTS


def copied_results(folder: Path) -> Path:
    """The result files of earlier runs."""
    shutil.copytree(EARLIER_RESULTS, folder, dirs_exist_ok=True)
    return folder


def write_run_file(folder: Path, task: str, variant: str, seed: int, dev: float, **others: Any) -> Path:
    """A finished run as a small file; `weights` are those of the layers at the input."""
    size = others.get("size")
    path = place_of(folder / "runs", task, variant, seed, size)
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = others.pop("weights", ())
    content = {
        "format": 1,
        **{"task": task, "variant": variant, "seed": seed, "size": None, "status": "finished", "reason": None},
        **{"metric": TASKS[task].metric, "dev": dev, "test": dev - 1, "epochs": [dev - 2, dev], "best_epoch": 2},
        "layer_weights": [
            {"place": "input", "layer": layer, "weight": weight, "gamma": 1.5} for layer, weight in enumerate(weights)
        ],
        "digests": {"config": "c0ffee", "computation": "ba5e", "inputs": {"data/train.txt": "d00d"}},
        "about": {"data": "open data", "bilm": "small", "arguments": {"hidden": 150}, "overrides": {}},
        "training_size": others.pop("training_size", None),
        **{"versions": {"torch": "2.13.0"}, "commits": ["abc1234"], "machines": ["a machine"], "seconds": 12.5},
        **others,
    }
    write_sealed(path, content)
    return path


def write_run_folder(folder: Path, task: str, variant: str, seed: int, dev: float, scored: str | None = None) -> Path:
    """A finished run in its own folder, without its archive; `scored` is a task whose scores it has."""
    run = folder / task / variant / str(seed)
    (run / "run").mkdir(parents=True)
    metric = TASKS[scored or task].metric
    scores = {f"best_validation_{metric}": dev / 100, f"test_{metric}": dev / 100}
    (run / "run" / "metrics.json").write_text(json.dumps(scores))
    for epoch in range(2):
        (run / "run" / f"metrics_epoch_{epoch}.json").write_text(json.dumps({f"validation_{metric}": dev / 100}))
    identity = {
        "task": task,
        "variant": variant,
        "seed": seed,
        "config": {"model": {"type": "</pre><b>"}},
        "inputs": {},
    }
    about = {"data": "open data", "bilm": None, "arguments": {"hidden": 150}, "overrides": {}}
    record = {"identity": identity, "digest": "0123", "about": about, "versions": {"torch": "2.13.0"}}
    write_sealed(run / "record.json", {**record, "finished": "2026-01-01T00:00:00Z"})
    return run
