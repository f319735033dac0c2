"""The scores of a finished run, which tables and figures are made of."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elmo_tasks.analysis import run_scores
from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.layer_weights import LayerWeight, layer_weights
from elmo_tasks.replication.train.record import check_scores, read_record

__all__ = ["FinishedRun"]


@dataclass(frozen=True)
class FinishedRun:
    """
    # Parameters

    task, variant
        Their names.
    seed
        That of all random numbers.
    size
        How much of the training set; `None` is all of it.
    dev, test
        The best score on the dev set, and that on the test set, in percent; `None` if there is no test set.
    epochs
        The score on the dev set after each epoch, in percent.
    best_epoch
        The epoch of the best one, counted from 1.
    layer_weights
        Of each place of ELMo; empty without ELMo, or if they were not read.
    about
        For a caption, see `Run`.
    versions
        Of the packages that it was made with.
    commits, machines
        Of the code, and the kinds of machines.
    seconds
        How long the training took; `None` if that is not known.
    sentences
        What it gets right in each sentence of the set that Table 1 is about, see `sentences_from_text`; `None` if that
        was not measured.
    """

    task: str
    variant: str
    seed: int
    size: int | None
    dev: float
    test: float | None
    epochs: tuple[float, ...] = ()
    best_epoch: int | None = None
    layer_weights: tuple[LayerWeight, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    commits: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    seconds: float | None = None
    sentences: np.ndarray | None = field(default=None, compare=False)

    @classmethod
    def of(cls, run: Run, *, with_layers: bool = False) -> "FinishedRun":
        """
        # Parameters

        run
            A run whose training has come to its end in its folder.
        with_layers
            Whether the weights of the layers are read too, from the archive.

        # Raises

        `ValueError`, `ConfigurationError`
            If a file of it is damaged, or a score is no number.
        `FileNotFoundError`
            If a file is missing.
        """
        check_scores(run.folder)
        dev, test = run_scores(run.serialization_dir, TASKS[run.task].metric)
        best = read_json(run.serialization_dir / "metrics.json").get("best_epoch")
        return cls(
            *(run.task, run.variant, run.seed, run.size),
            dev=100 * dev,
            test=None if test is None else 100 * test,
            epochs=_epochs(run),
            best_epoch=best + 1 if isinstance(best, int) else None,
            layer_weights=tuple(layer_weights(run.serialization_dir / "model.tar.gz")) if with_layers else (),
            about=run.about,
            versions=(read_record(run.folder) or {"versions": {}})["versions"],
        )


def _epochs(run: Run) -> tuple[float, ...]:
    scores: dict[int, float] = {}
    for file in run.serialization_dir.glob("metrics_epoch_*.json"):
        name, metrics = f"validation_{TASKS[run.task].metric}", read_json(file)
        value = metrics.get(name) if isinstance(metrics, dict) else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"{file} must have a number as '{name}', but has {value!r:.100}")
        scores[int(re.findall(r"\d+", file.name)[0])] = 100 * value
    return tuple(scores[epoch] for epoch in sorted(scores))
