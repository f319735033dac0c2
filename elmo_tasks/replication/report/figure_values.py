"""The values of Figures 1 and 2."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.layer_weights import layer_weights
from elmo_tasks.replication.report.results import run_score
from elmo_tasks.replication.report.summary import Summary
from elmo_tasks.replication.train.record import check_scores

__all__ = ["Row", "by_epochs", "by_sizes", "mixes"]

Row = dict[str, Any]
"""A line of a CSV file, by the names of its columns."""


def by_sizes(runs: Iterable[Run], total: Callable[[str], int]) -> list[Row]:
    """
    Figure 1, the score by the size of the training set.

    # Parameters

    runs
        Finished runs.
    total
        The size of the whole training set of a task.

    # Returns

    `List[Row]`
        `task`, `variant`, `size`, and of the best scores on the dev set, in percent, `mean`, `sd` (empty for one seed)
        and `n`.
    """
    scores = defaultdict(list)
    for run in runs:
        dev, _ = run_score(run)
        scores[run.task, run.variant, run.size or total(run.task)].append(dev)
    return [
        {"task": task, "variant": variant, "size": size, **_summary(values)}
        for (task, variant, size), values in sorted(scores.items())
    ]


def by_epochs(runs: Iterable[Run]) -> list[Row]:
    """
    Figure 1, the score after each epoch on the whole training set.

    # Returns

    `List[Row]`
        `task`, `variant`, `epoch` (counted from 1), and of the scores on the dev set, in percent, `mean`, `sd` (empty
        for one seed) and `n`: the runs that have come to this epoch.
    """
    scores = defaultdict(list)
    for run in runs:
        if run.size is None:
            check_scores(run.folder)
            for file in run.serialization_dir.glob("metrics_epoch_*.json"):
                epoch = int(re.findall(r"\d+", file.name)[0])
                name, metrics = f"validation_{TASKS[run.task].metric}", read_json(file)
                value = metrics.get(name) if isinstance(metrics, dict) else None
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise ValueError(f"{file} must have a number as '{name}', but has {value!r:.100}")
                scores[run.task, run.variant, epoch + 1].append(100 * value)
    return [
        {"task": task, "variant": variant, "epoch": epoch, **_summary(values)}
        for (task, variant, epoch), values in sorted(scores.items())
    ]


def mixes(runs: Iterable[Run]) -> list[Row]:
    """
    Figure 2.

    # Parameters

    runs
        Finished runs.

    # Returns

    `List[Row]`
        `task`, `place`, `seed`, `layer`, `weight` (after the softmax) and `gamma`.
    """
    return [
        {"task": run.task, "place": place, "seed": run.seed, "layer": layer, "weight": weight, "gamma": gamma}
        for run in runs
        for place, layer, weight, gamma in layer_weights(run.serialization_dir / "model.tar.gz")
    ]


def _summary(values: list[float]) -> Row:
    summary = Summary.of(values)
    return {"mean": summary.mean, "sd": "" if summary.sd is None else summary.sd, "n": summary.n}
