"""A finished run as a small file: `results/runs/<task>/<variant>/<seed>.json`."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmo_tasks.files.atomic_files import TEMPORARY
from elmo_tasks.files.folders import files_below
from elmo_tasks.files.sealed_json import json_sha256, read_sealed, write_sealed
from elmo_tasks.replication.evidence.measurement import MEASUREMENTS
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.layer_weights import LayerWeight
from elmo_tasks.replication.report.sentence_scores import sentences_from_text
from elmo_tasks.replication.train.record import read_record, training_seconds

__all__ = ["FORMAT", "RunFile", "digests_of", "failed_file", "finished_file", "place_of", "run_files", "with_sentences"]

FORMAT = 1

_KEYS: dict[str, Any] = {
    "task": str,
    "variant": str,
    "seed": int,
    "size": (int, type(None)),
    "status": str,
    "reason": (str, type(None)),
    "digests": dict,
    "about": dict,
}
_DIGESTS: dict[str, Any] = {"config": str, "computation": str, "inputs": dict}
_LAYER_WEIGHT: dict[str, Any] = {"place": str, "layer": int, "weight": (int, float), "gamma": (int, float)}
_KEYS_OF_FINISHED: dict[str, Any] = {
    "metric": str,
    "dev": (int, float),
    "test": (int, float, type(None)),
    "epochs": list,
    "best_epoch": (int, type(None)),
    "layer_weights": list,
    "training_size": (int, type(None)),
    "seconds": (int, float),
    "versions": dict,
    "commits": list,
    "machines": list,
}


@dataclass(frozen=True)
class RunFile:
    """
    The content of such a file.

    # Parameters

    path
        The file.
    status
        `"finished"`, or `"failed"`.
    reason
        Why it failed.
    digests
        Those of the config, of what the code computes, and of each input: see `digests_of`.
    run
        The scores; `None` if it failed.
    content
        All of it.
    """

    path: Path
    status: Literal["finished", "failed"]
    reason: str | None
    digests: dict[str, Any]
    run: FinishedRun | None
    content: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "RunFile":
        """
        # Raises

        `ValueError`
            If the file is damaged, of a newer version of this package, or not such a file; with its name.
        `OSError`
            If it cannot be read.
        """
        content = read_sealed(path)
        version = content.get("format")
        if type(version) is int and version > FORMAT:
            raise ValueError(
                f"{path} must have a format up to {FORMAT}, but has {version}: it was written by a newer version of "
                "elmo_tasks, which is needed to read it"
            )
        if version != FORMAT:
            raise ValueError(f'{path} must be a run, with "format": {FORMAT}, but has {version!r:.20}')
        try:
            return cls._from_json(path, content)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{path} must be a run, as `allennlp elmo-tables --plan` writes it, but: {error}"
            ) from None

    @classmethod
    def _from_json(cls, path: Path, content: dict[str, Any]) -> "RunFile":
        _check(content, _KEYS)
        _check(content["digests"], _DIGESTS)
        if content["task"] not in TASKS:
            raise ValueError(f"'task' must be one of {', '.join(TASKS)}, but is {content['task']!r:.50}")
        if content["status"] not in ("finished", "failed"):
            raise ValueError(f"'status' must be 'finished' or 'failed', but is {content['status']!r:.50}")
        run = None
        if content["status"] == "finished":
            _check(content, _KEYS_OF_FINISHED)
            _check_scores(content)
            run = FinishedRun(
                task=content["task"],
                variant=content["variant"],
                seed=content["seed"],
                size=content["size"],
                dev=content["dev"],
                test=content["test"],
                epochs=tuple(content["epochs"]),
                best_epoch=content["best_epoch"],
                layer_weights=tuple(map(_layer_weight, content["layer_weights"])),
                versions=content["versions"],
                commits=tuple(map(str, content["commits"])),
                machines=tuple(map(str, content["machines"])),
                seconds=content["seconds"],
                sentences=_sentences(content),
            )
        return cls(path, content["status"], content["reason"], content["digests"], run, content)

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """Task, variant, seed and size: the runs of a plan differ in one of them."""
        task, variant, seed, size = (self.content[key] for key in ("task", "variant", "seed", "size"))
        return task, variant, seed, size


def place_of(folder: Path, task: str, variant: str, seed: int, size: int | None) -> Path:
    """Where the file of a run is, in the folder of all."""
    name = f"{seed}.json" if size is None else f"{seed}-{size}.json"
    return folder / task / variant / name


def run_files(folder: Path) -> list[Path]:
    """All files of runs in a folder, sorted, but for those that another process is writing. Links are followed."""
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in files_below(folder, with_broken_links=True)
        if path.suffix == ".json" and path.parent != folder / MEASUREMENTS and not path.name.startswith(TEMPORARY)
    )


def digests_of(run: Run) -> dict[str, Any]:
    """
    # Returns

    `Dict[str, Any]`
        `config`, 16 hexadecimal digits of the config with folders named; `computation`, see `computation_digest`; and
        `inputs`, by the name of each file of the data and the biLM.
    """
    identity = run.identity
    return {
        "config": json_sha256(identity["config"])[:16],
        "computation": identity["computation"],
        "inputs": identity["inputs"],
    }


def finished_file(run: Run, path: Path, training_size: Callable[[], int] | None) -> None:
    """
    Writes the file of a run that has come to its end in its folder, whole or not at all.

    # Parameters

    run
        The run.
    path
        The file.
    training_size
        How large the training set is, if that is known.

    # Raises

    `ValueError`, `ConfigurationError`, `OSError`
        If the folder is damaged, a score is no number, or the file cannot be written.
    """
    finished = FinishedRun.of(run, with_layers=run.about["bilm"] is not None)
    scores = {
        "metric": TASKS[run.task].metric,
        "dev": finished.dev,
        "test": finished.test,
        "epochs": list(finished.epochs),
        "best_epoch": finished.best_epoch,
        "layer_weights": [weight._asdict() for weight in finished.layer_weights],
        "training_size": None if training_size is None else training_size(),
    }
    _check_scores(scores)
    _write(run, path, "finished", None, scores)


def failed_file(run: Run, path: Path, reason: str) -> None:
    """Writes the file of a run that has failed."""
    _write(run, path, "failed", reason, {})


def _write(run: Run, path: Path, status: str, reason: str | None, scores: Mapping[str, Any]) -> None:
    record = read_record(run.folder) or {}
    training = record.get("training", {})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(
        path,
        {
            "format": FORMAT,
            **{"task": run.task, "variant": run.variant, "seed": run.seed, "size": run.size},
            **{"status": status, "reason": reason},
            **scores,
            "digests": digests_of(run),
            "about": run.about,
            "versions": record.get("versions", {}),
            "commits": training.get("commits", []),
            "machines": training.get("machines", []),
            "seconds": round(training_seconds(run.folder, record), 1),
            "finished": record.get("finished") or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
    )


def with_sentences(path: Path, sentences: str) -> None:
    """
    Adds scores of sentences to the file of a finished run.

    # Parameters

    path
        The file.
    sentences
        From `text_of_sentences`.

    # Raises

    `ValueError`, `OSError`
        If they do not give the score of the run, or the file is damaged, or cannot be written.
    """
    content = {**read_sealed(path), "sentences": sentences}
    _sentences(content)
    write_sealed(path, content)


def _sentences(content: Mapping[str, Any]) -> np.ndarray | None:
    if content.get("sentences") is None:
        return None
    return sentences_from_text(content["sentences"], content[TASKS[content["task"]].split])


def _layer_weight(row: Any) -> LayerWeight:
    if not isinstance(row, dict):
        raise ValueError(f"'layer_weights' must be objects, but has {row!r:.100}")
    _check(row, _LAYER_WEIGHT)
    return LayerWeight(**row)


def _check(content: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    for key, kind in kinds.items():
        if key not in content or not isinstance(content[key], kind) or isinstance(content[key], bool):
            raise ValueError(f"'{key}' must be there, but is {content.get(key)!r:.100}")


def _check_scores(content: Mapping[str, Any]) -> None:
    named = [("dev", content["dev"]), *(("epochs", score) for score in content["epochs"])]
    if content["test"] is not None:
        named.append(("test", content["test"]))
    for key, value in named:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not 0 <= value <= 100:
            raise ValueError(f"'{key}' must be numbers from 0 to 100, but has {value!r:.100}")
