"""`allennlp elmo-tables`: the paper's tables and figures, with our numbers next to the paper's."""

import argparse
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
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
    changes: dict[str, dict[str, Any]] = {}
    for key in ("overrides", "arguments"):
        for task, values in getattr(arguments, key):
            changes.setdefault(task, {}).setdefault(key, {}).update(values)
    options: dict[str, Any] = {
        "data": arguments.data,
        "bilm": arguments.bilm,
        "changes": changes,
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
        lines = [*states(plan, runs), *(f"{'to run':12} {exhibit}" for exhibit in to_measure)]
        print("\n".join(lines))
    else:
        if not arguments.finished:
            failed = _train(plan, sort_out(runs).missing, to_measure, arguments.jobs)
            problems = {**sort_out(runs).problems, **failed}
        # The runs with a transformer are a column of Table 1.
        shown = dict.fromkeys("table 1" if name == TRANSFORMER else name for name in exhibits)
        for exhibit in shown:
            _show(exhibit, plan, arguments)
        if arguments.against:
            published = Plan(arguments.plan, results=arguments.against, **options)
            earlier = published.runs(exhibits, arguments.tasks)
            problems |= _compare(runs, earlier, arguments)
    if problems:
        lines = [f"{name}: {problem}" for name, problem in problems.items()]
        sys.exit("\n".join(["Missing:", *lines]))


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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    problems = {}
    for run, problem in train_all(missing, jobs):
        print(f"{run.name}: {problem or 'finished'}", file=sys.stderr, flush=True)
        problems[run.name] = problem
    for exhibit in to_measure:
        problems[exhibit] = measure(plan, exhibit)
    return {name: problem for name, problem in problems.items() if problem}


def _show(exhibit: str, plan: "Plan", arguments: argparse.Namespace) -> None:
    """
    Prints a table, or draws a figure and prints the names of its files, if any run is finished.
    """
    from elmo_tasks.paper import figures, tables

    if exhibit.startswith("figure"):
        runs = tables.finished_runs(plan, exhibit, arguments.tasks)
        if runs is not None:
            files = figures.draw(exhibit, runs, plan.results / "figures")
            print(*files, *tables.version_notes(runs["version"]), sep="\n")
        return
    made = tables.table_of(plan, exhibit, arguments.tasks)
    if made is not None:
        settings = plan.notes(made.tasks) if made.tasks else []
        _print(tables.TITLES[exhibit], made.rows, [*made.notes, *settings], arguments.format)


def _compare(
    runs: list["Run"],
    published: list["Run"],
    arguments: argparse.Namespace,
) -> dict[str, str]:
    """Prints the runs next to the same published runs, and returns the problems of those."""
    from elmo_tasks.paper import tables
    from elmo_tasks.paper.train import sort_out

    ours, earlier = sort_out(runs), sort_out(published)
    if ours.scores and earlier.scores:
        rows = tables.side_by_side(tables.runs_of(ours.scores), tables.runs_of(earlier.scores))
        _print(f"Next to {arguments.against}", rows, [], arguments.format)
    return earlier.problems


def _print(title: str, table: "pd.DataFrame", notes: list[str], format: str) -> None:
    print(f"{title}\n\n{_FORMATS[format](table)}\n")
    if format != "csv" and notes:
        print("\n".join(f"- {note}" for note in notes), end="\n\n")


def _by_task(text: str) -> tuple[str, dict[str, Any]]:
    """`snli={"trainer.num_epochs": 4}` or, for all tasks, `{"trainer.num_epochs": 4}`."""
    task, content = ("", text) if text.startswith("{") else text.split("=", 1)
    if task not in ("", *TASKS):
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(TASKS)}, got {task!r}")
    return task, json.loads(content)
