"""The report of a folder of results: one page of HTML that needs no other file."""

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from elmo_tasks.printable import one_line, printable_lines
from elmo_tasks.replication.overview.sources import ReportedRun, Sources
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.plan import variants_of
from elmo_tasks.replication.plan.task import POS, TASKS
from elmo_tasks.replication.report.figure_plots import curves_svg, mixes_svg
from elmo_tasks.replication.report.figure_values import by_epochs, by_sizes, mixes
from elmo_tasks.replication.report.page import rendered

__all__ = ["report_page", "without_figures"]

_SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)


class _Figure(NamedTuple):
    title: str
    caption: str
    # An element of a page, made by matplotlib of our own names and numbers.
    svg: str


class _Block(NamedTuple):
    """The runs of a task, variant and size, from one table or from files of their own."""

    id: str
    title: str
    runs: list[ReportedRun]
    # What all of them have, and what each has of its own, in the order of the runs.
    common: dict[str, str]
    own: list[dict[str, str]]
    config: str | None


def report_page(sources: Sources) -> str:
    """
    # Parameters

    sources
        Results and runs.

    # Returns

    `str`
        All tables with the paper's numbers, figures, and how each number was made. The same sources give the same page.
    """
    blocks = _blocks(sources.runs)
    # The runs on the whole training set come before those on parts of it.
    ids = {(run.table, run.task, run.variant): block.id for block in reversed(blocks) for run in block.runs[:1]}

    def anchor(cell: str, table: str) -> str | None:
        of = getattr(cell, "of", ())
        return ids.get((table, *of), ids.get((None, *of)))

    text = rendered(
        "report.html",
        tables=sources.tables,
        figures=[*_curves(sources.runs), *_mixes(sources.runs)],
        differences=[(TASKS[name].title, TASKS[name].differences) for name in _tasks(sources.runs)],
        blocks=blocks,
        problems=sources.problems,
        anchor=anchor,
        score=_score,
    )
    return printable_lines(text)


def _score(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.2f}"


def without_figures(page: str) -> str:
    """A page but for its figures, which another version of matplotlib draws in another way."""
    return _SVG.sub("<svg/>", page)


def _tasks(runs: Iterable[ReportedRun]) -> list[str]:
    found = {run.task for run in runs}
    return [name for name in TASKS if name in found]


def _blocks(runs: Iterable[ReportedRun]) -> list[_Block]:
    blocks: list[_Block] = []
    for (task, table, variant, size), group in groupby(
        runs, key=lambda run: (run.task, run.table, run.variant, run.size)
    ):
        chosen = list(group)
        part = "" if size is None else f", {size:,} of its training set"
        of_table = "" if table is None else f" ({table.partition(':')[0]})"
        common = {
            name: value
            for name, value in chosen[0].facts.items()
            if all(run.facts.get(name) == value for run in chosen)
        }
        own = [{name: value for name, value in run.facts.items() if name not in common} for run in chosen]
        config = next((run.config for run in chosen if run.config is not None), None)
        title = f"{TASKS[task].title}, {variant}{part}{of_table}"
        blocks.append(_Block(f"runs-{len(blocks) + 1}", one_line(title), chosen, common, own, config))
    return blocks


def _curves(runs: Iterable[ReportedRun]) -> list[_Figure]:
    """Figure 1 of each task that has scores by epoch, or by the size of the training set."""
    figures = []
    for task in _tasks(runs):
        names = _compared(task)
        chosen = [run for run in runs if run.task == task and run.variant in names]
        finished = [run.finished for run in chosen if run.finished is not None]
        title = f"Figure 1: {TASKS[task].title}, {TASKS[task].score} on the dev set"
        bands = "means over seeds; the bands are standard deviations"
        if rows := by_epochs(finished):
            svg = curves_svg(rows, "epoch", f"epochs-{task}")
            figures.append(_Figure(f"{title}, by epochs", f"On the whole training set: {bands}.", svg))
        total = next((run.training_size for run in chosen if run.training_size is not None), None)
        # Without its size, the whole training set has no place next to its parts.
        parts = [run for run in finished if run.size is not None or total is not None]
        if any(run.size is not None for run in parts):
            svg = curves_svg(by_sizes(parts, {task: total or 0}.__getitem__), "size", f"sizes-{task}")
            figures.append(_Figure(f"{title}, by the size of the training set", f"The best epoch: {bands}.", svg))
    return figures


def _compared(task: str) -> list[str]:
    """Without and with ELMo; of the parts of speech, the layers."""
    exhibit = Exhibit.TABLE_6 if task == POS.name else Exhibit.TABLE_1
    return [variant.name for variant in variants_of(exhibit, TASKS[task])]


def _mixes(runs: Iterable[ReportedRun]) -> list[_Figure]:
    """Figure 2, of the runs with ELMo where Table 1 has it."""
    chosen = [
        run.finished
        for run in runs
        if run.finished is not None
        and run.size is None
        and run.task != POS.name
        and run.variant == _compared(run.task)[1]
    ]
    rows = mixes(chosen)
    if not rows:
        return []
    caption = "Layer 0 is the context-insensitive one. Each cell is the mean over seeds."
    return [_Figure("Figure 2: the learnt weights of the layers", caption, mixes_svg(rows, "mixes"))]
