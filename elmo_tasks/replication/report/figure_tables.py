"""Figures 1 and 2 as tables of a page."""

from collections.abc import Callable, Sequence
from statistics import fmean

from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.plan import variants_of
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.figure_values import Row
from elmo_tasks.replication.report.plan_results import PlanResults
from elmo_tasks.replication.report.render import grid
from elmo_tasks.replication.report.summary import Summary

__all__ = ["Compared", "compared", "figure_sections"]

Compared = dict[int, tuple[Summary, Summary]]
"""
Of one task: the scores without and with ELMo, by the size of the training set or the epoch, the smallest first; of
those that both have.
"""

_CURVES = """## Figure 1: less training data, fewer epochs

Scores on the dev set in percent, mean ± standard deviation over seeds (their number): of the best epoch, after
training on a part of the training set and on all of it (of SRL so many sentences, with all their propositions), and of
each epoch on all of it. [The report](../report.html) draws both."""

_WEIGHTS = """## Figure 2: the weights of the layers

What the tasks of Table 1 have learned, after the softmax: the mean over seeds, whose number is in brackets. All start
at 1/3. Layer 0 is the context-insensitive one."""


def figure_sections(plan: PlanResults) -> list[str]:
    """
    # Parameters

    plan
        With the values of the figures.

    # Returns

    `List[str]`
        Headings, sentences and tables in Markdown, of the figures that have values.
    """
    sections = []
    if sizes := compared(plan.sizes, "size"):
        sections += [_CURVES, _curves(sizes, "training examples", lambda size: f"{size:,}")]
        if epochs := compared(plan.epochs, "epoch"):
            sections.append(_curves(epochs, "epoch", str))
    if plan.mixes:
        sections += [_WEIGHTS, _weights(plan.mixes)]
    return sections


def compared(rows: Sequence[Row], x: str) -> dict[str, Compared]:
    """
    # Parameters

    rows
        Of `by_sizes` or `by_epochs`.
    x
        `"size"` or `"epoch"`.

    # Returns

    `Dict[str, Compared]`
        By task, in the paper's order; of tasks that have some.
    """
    found: dict[str, Compared] = {}
    for task in (task for task in TASKS if any(row["task"] == task for row in rows)):
        summaries = {
            (row["variant"], row[x]): Summary(row["mean"], None if row["sd"] == "" else row["sd"], row["n"])
            for row in rows
            if row["task"] == task
        }
        baseline, elmo = (variant.name for variant in variants_of(Exhibit.FIGURE_1, TASKS[task]))
        both = sorted(n for variant, n in summaries if variant == baseline and (elmo, n) in summaries)
        if both:
            found[task] = {number: (summaries[baseline, number], summaries[elmo, number]) for number in both}
    return found


def _curves(by_task: dict[str, Compared], title: str, text: Callable[[int], str]) -> str:
    cells = []
    for task, scores in by_task.items():
        for number, (baseline, elmo) in scores.items():
            increase = f"{baseline.absolute_increase(elmo):+.2f}"
            cells.append(
                [f"{TASKS[task].title}, {TASKS[task].score}", text(number), str(baseline), str(elmo), increase]
            )
    return grid(["task", title, "baseline", "ELMo", "increase"], cells)


def _weights(rows: Sequence[Row]) -> str:
    """A row for each task and place, with the mean weight of each layer, and the mean scale."""
    layers = sorted({row["layer"] for row in rows})
    cells = []
    for task in TASKS:
        for place in sorted({row["place"] for row in rows if row["task"] == task}):
            found = [row for row in rows if (row["task"], row["place"]) == (task, place)]
            weights = [[row["weight"] for row in found if row["layer"] == layer] for layer in layers]
            title = f"{TASKS[task].title}, {place} ({len({row['seed'] for row in found})})"
            # The biLM of a task may have fewer layers than that of another.
            cells.append([title, *(f"{fmean(of_layer):.2f}" if of_layer else "–" for of_layer in weights)])
            cells[-1].append(f"{fmean(row['gamma'] for row in found):.2f}")
    return grid(["task", *(f"layer {layer}" for layer in layers), "γ"], cells)
