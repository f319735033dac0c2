"""`allennlp elmo-tables`: the paper's tables and figures, with our numbers next to the paper's."""

import argparse
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.files.jobs import at_least_one
from elmo_tasks.paper.numbers import TABLES, TASKS, TRANSFORMER

if TYPE_CHECKING:
    import pandas as pd

    from elmo_tasks.paper.plan import Plan, Run

__all__ = ["Tables"]

_FORMATS: dict[str, Callable[["pd.DataFrame"], str]] = {
    "markdown": lambda table: table.to_markdown(index=False, disable_numparse=True),
    "latex": lambda table: table.to_latex(index=False, escape=True),
    "csv": lambda table: table.to_csv(index=False),
}


@Subcommand.register("elmo-tables")
class Tables(Subcommand):
    """Train the runs of the paper's tables and figures, and print them with the paper's numbers."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        about = self.__doc__
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=about, help=about)
        changes: dict[str, Any] = {
            "action": "append",
            "default": [],
            "type": _by_task,
            "metavar": "[TASK=]JSON",
        }
        add = sub.add_argument
        add(
            "--table",
            choices=["1", "2", "3", "4", "5", "6"],
            action="append",
            default=[],
            help="default: all in the plan",
        )
        add(
            "--figure",
            choices=["1", "2"],
            action="append",
            default=[],
            help="write PNG, SVG, CSV to RESULTS/figures",
        )
        add(
            "--transformer",
            action="store_true",
            help="Table 1's models with the plan's transformer instead of the biLM",
        )
        add(
            "--plan",
            default="paper",
            help="'paper', 'open' or a Jsonnet file with data, settings, seeds",
        )
        add("--tasks", nargs="+", choices=list(TASKS), help="default: all in the plan")
        add("--seeds", type=at_least_one, help="number of seeds per table (default: the plan's)")
        add("--data", help="the folder of the data (default: $ELMO_TASKS_DATA)")
        add("--bilm", help="name or folder (default: the plan's, or $ELMO_TASKS_BILM)")
        add("--results", type=Path, help="the folder of the runs (default: results/PLAN)")
        add("--against", type=Path, help="also print each run next to the same run in this folder")
        add("--overrides", **changes, help="changes to the configs, with dotted keys")
        add("--arguments", **changes, help="arguments of training_configs/lib/TASK.libsonnet")
        add("--format", choices=["markdown", "latex", "csv"], default="markdown")
        add("--jobs", type=at_least_one, default=1, help="number of parallel runs")
        add(
            "--dry-run",
            action="store_true",
            help="list the runs and the missing data, without training",
        )
        add("--finished", action="store_true", help="show the finished runs, without training")
        sub.set_defaults(func=_tables)
        return sub


def _tables(arguments: argparse.Namespace) -> None:
    # Imported here, because pandas, SciPy and matplotlib would slow down every start of `allennlp`.
    from elmo_tasks.paper.measures import MEASURED
    from elmo_tasks.paper.plan import Plan
    from elmo_tasks.paper.train import sort_out, states

    exhibits = _exhibits(arguments)
    options: dict[str, Any] = {
        "data": arguments.data,
        "bilm": arguments.bilm,
        "changes": _changes(arguments),
        "seeds": arguments.seeds,
    }
    results = arguments.results or Path("results", Path(arguments.plan).stem)
    plan = Plan(arguments.plan, results=results, **options)
    runs = plan.runs(exhibits, arguments.tasks)
    to_measure = []
    for exhibit, file in MEASURED.items():
        if exhibit in exhibits and not (plan.results / file).exists():
            to_measure.append(exhibit)
    problems = sort_out(runs).problems
    if arguments.dry_run:
        lines = states(plan, runs)
        for exhibit in to_measure:
            lines.append(f"{'to run':12} {exhibit}")
        print("\n".join(lines))
    else:
        if not arguments.finished:
            failures = _train(plan, sort_out(runs).missing, to_measure, arguments.jobs)
            problems = {**sort_out(runs).problems, **failures}
        for exhibit in _shown(exhibits):
            _show(exhibit, plan, arguments)
        if arguments.against:
            published_plan = Plan(arguments.plan, results=arguments.against, **options)
            published_runs = published_plan.runs(exhibits, arguments.tasks)
            problems |= _compare(runs, published_runs, arguments)
    if problems:
        lines = [f"{name}: {problem}" for name, problem in problems.items()]
        sys.exit("\n".join(["Missing:", *lines]))


def _changes(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The overrides and arguments of each task."""
    changes: dict[str, dict[str, Any]] = {}
    for key in ("overrides", "arguments"):
        for task, values in getattr(arguments, key):
            changes.setdefault(task, {}).setdefault(key, {}).update(values)
    return changes


def _shown(exhibits: list[str]) -> list[str]:
    """The exhibits to print. The runs with a transformer are a column of Table 1."""
    shown = []
    for exhibit in exhibits:
        if exhibit == TRANSFORMER:
            exhibit = "table 1"
        if exhibit not in shown:
            shown.append(exhibit)
    return shown


def _exhibits(arguments: argparse.Namespace) -> list[str]:
    exhibits = [f"table {number}" for number in arguments.table]
    exhibits += [f"figure {number}" for number in arguments.figure]
    if arguments.transformer:
        exhibits.append(TRANSFORMER)
    return exhibits or [exhibit for exhibit in TABLES if exhibit != TRANSFORMER]


def _train(plan: "Plan", missing: list["Run"], to_measure: list[str], jobs: int) -> dict[str, str]:
    """Trains the missing runs, measures the missing tables, and returns what failed."""
    from elmo_tasks.paper.measures import measure
    from elmo_tasks.paper.train import train_all

    # SIGTERM also stops the trainings, like Ctrl-C.
    signal.signal(signal.SIGTERM, _exit)
    problems = {}
    for run, problem in train_all(missing, jobs):
        print(f"{run.name}: {problem or 'finished'}", file=sys.stderr, flush=True)
        if problem:
            problems[run.name] = problem
    for exhibit in to_measure:
        problem = measure(plan, exhibit)
        if problem:
            problems[exhibit] = problem
    return problems


def _exit(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(128 + signal_number)


def _show(exhibit: str, plan: "Plan", arguments: argparse.Namespace) -> None:
    """
    Prints a table, or draws a figure and prints the names of its files, if any run is finished.
    """
    from elmo_tasks.paper import figures, run_scores, tables

    if exhibit.startswith("figure"):
        runs = run_scores.finished_runs(plan, exhibit, arguments.tasks)
        if runs is not None:
            files = figures.draw(exhibit, runs, plan.results / "figures")
            print(*files, *run_scores.version_notes(runs["version"]), sep="\n")
        return
    title = tables.TITLES[exhibit]
    table = tables.table_of(plan, exhibit, arguments.tasks)
    if table is None:
        print(f"{title}: nothing is finished in {plan.results}", file=sys.stderr)
        return
    notes = list(table.notes)
    if table.tasks:
        notes += plan.notes(table.tasks)
        tasks_of_plan = {run.task: None for run in plan.runs([exhibit], arguments.tasks)}
        unfinished = [TASKS[task].title for task in tasks_of_plan if task not in table.tasks]
        if unfinished:
            notes.append(f"Without finished runs: {', '.join(unfinished)}.")
    _print(title, table.rows, notes, arguments.format)


def _compare(
    runs: list["Run"],
    published_runs: list["Run"],
    arguments: argparse.Namespace,
) -> dict[str, str]:
    """Prints the runs next to the same published runs, and returns the problems of those."""
    from elmo_tasks.paper.run_scores import runs_of, side_by_side
    from elmo_tasks.paper.train import sort_out

    ours = sort_out(runs)
    published = sort_out(published_runs)
    if ours.scores and published.scores:
        rows = side_by_side(runs_of(ours.scores), runs_of(published.scores))
        if not rows.empty:
            _print(f"Next to {arguments.against}", rows, [], arguments.format)
    missing = {run.name for run in published.missing}
    finished = {run.name for run in runs} - {run.name for run in ours.missing}
    not_compared = sorted(missing & finished)
    if not_compared:
        print(f"Not in {arguments.against}: {', '.join(not_compared)}", file=sys.stderr)
    return published.problems


def _print(title: str, rows: "pd.DataFrame", notes: list[str], format: str) -> None:
    print(f"{title}\n\n{_FORMATS[format](rows)}\n")
    if format != "csv" and notes:
        for note in notes:
            print(f"- {note}")
        print()


def _by_task(text: str) -> tuple[str, dict[str, Any]]:
    """`snli={"trainer.num_epochs": 4}` or, for all tasks, `{"trainer.num_epochs": 4}`."""
    if text.startswith("{"):
        return "", json.loads(text)
    task, content = text.split("=", 1)
    if task and task not in TASKS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(TASKS)}, got {task!r}")
    return task, json.loads(content)
