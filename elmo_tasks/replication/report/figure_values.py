"""The values of Figures 1 and 2."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.summary import Summary

__all__ = ["Row", "by_epochs", "by_sizes", "mixes"]

Row = dict[str, Any]
"""A line of a CSV file, by the names of its columns."""


def by_sizes(runs: Iterable[FinishedRun], total: Callable[[str], int]) -> list[Row]:
    """
    Figure 1, the score by the size of the training set.

    # Parameters

    runs
        All that are in the figure.
    total
        The size of the whole training set of a task.

    # Returns

    `List[Row]`
        `task`, `variant`, `size`, and of the best scores on the dev set, in percent, `mean`, `sd` (empty for one seed)
        and `n`.
    """
    scores = defaultdict(list)
    for run in runs:
        scores[run.task, run.variant, run.size or total(run.task)].append(run.dev)
    return [
        {"task": task, "variant": variant, "size": size, **_summary(values)}
        for (task, variant, size), values in sorted(scores.items())
    ]


def by_epochs(runs: Iterable[FinishedRun]) -> list[Row]:
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
            for epoch, score in enumerate(run.epochs, start=1):
                scores[run.task, run.variant, epoch].append(score)
    return [
        {"task": task, "variant": variant, "epoch": epoch, **_summary(values)}
        for (task, variant, epoch), values in sorted(scores.items())
    ]


def mixes(runs: Iterable[FinishedRun]) -> list[Row]:
    """
    Figure 2.

    # Parameters

    runs
        Finished runs, with the weights of their layers.

    # Returns

    `List[Row]`
        `task`, `place`, `seed`, `layer`, `weight` (after the softmax) and `gamma`.
    """
    return [
        {"task": run.task, "place": place, "seed": run.seed, "layer": layer, "weight": weight, "gamma": gamma}
        for run in runs
        for place, layer, weight, gamma in run.layer_weights
    ]


def _summary(values: list[float]) -> Row:
    summary = Summary.of(values)
    return {"mean": summary.mean, "sd": "" if summary.sd is None else summary.sd, "n": summary.n}
