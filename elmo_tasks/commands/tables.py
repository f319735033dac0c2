"""`allennlp elmo-tables`: the paper's tables and figures, with our numbers next to the paper's."""

import argparse
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.arguments import at_least_one
from elmo_tasks.replication.paper import TABLES, TASKS

if TYPE_CHECKING:
    import pandas as pd

    from elmo_tasks.replication.plan import Plan, Run

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
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=self.__doc__, help=self.__doc__)
        changes: dict[str, Any] = {"action": "append", "default": [], "type": _by_task, "metavar": "[TASK=]JSON"}
        add = sub.add_argument
        add("--table", choices=["1", "2", "3", "5", "6"], action="append", default=[], help="default: all in the plan")
        add("--figure", choices=["1", "2"], action="append", default=[], help="write PNG, SVG, CSV to RESULTS/figures")
        add("--plan", default="paper", help="'paper' (default), 'open' or a Jsonnet file with data, settings, seeds")
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
        add("--dry-run", action="store_true", help="list the runs and the missing data, without training")
        sub.set_defaults(func=_tables)
        return sub


def _tables(arguments: argparse.Namespace) -> None:
    # Imported here, because pandas, SciPy and matplotlib would slow down every start of `allennlp`.
    from elmo_tasks.replication.plan import Plan
    from elmo_tasks.replication.train import sort_out, states

    exhibits = [f"table {number}" for number in arguments.table] + [f"figure {number}" for number in arguments.figure]
    exhibits = exhibits or list(TABLES)
    changes: dict[str, dict[str, Any]] = {}
    for key in ("overrides", "arguments"):
        for task, values in getattr(arguments, key):
            changes.setdefault(task, {}).setdefault(key, {}).update(values)
    options = {"data": arguments.data, "bilm": arguments.bilm, "changes": changes, "seeds": arguments.seeds}

    plan = Plan(arguments.plan, results=arguments.results or Path("results", Path(arguments.plan).stem), **options)
    runs = plan.runs(exhibits, arguments.tasks)
    has_senses = "table 5" not in exhibits or (plan.results / "wsd.json").exists()
    problems = sort_out(runs).problems
    if arguments.dry_run:
        print(*states(plan, runs), *["to run       word senses"] * (not has_senses), sep="\n")
    else:
        problems |= _train(plan, sort_out(runs).missing, has_senses, arguments.jobs)
        for exhibit in exhibits:
            _show(exhibit, plan, arguments)
        if arguments.against:
            published = Plan(arguments.plan, results=arguments.against, **options).runs(exhibits, arguments.tasks)
            problems |= _compare(runs, published, arguments)
    if problems:
        sys.exit("\n".join(["Missing:", *(f"{name}: {problem}" for name, problem in problems.items())]))


def _train(plan: "Plan", missing: list["Run"], has_senses: bool, jobs: int) -> dict[str, str]:
    """Trains the missing runs, measures word senses, and returns what failed."""
    from elmo_tasks.replication.train import measure_word_senses, train_all

    # SIGTERM also stops the trainings, like Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    problems = {}
    for run, problem in train_all(missing, jobs):
        print(f"{run.name}: {problem or 'finished'}", file=sys.stderr, flush=True)
        problems[run.name] = problem
    if not has_senses:
        problems["word senses"] = measure_word_senses(plan)
    return {name: problem for name, problem in problems.items() if problem}


def _show(exhibit: str, plan: "Plan", arguments: argparse.Namespace) -> None:
    """Prints a table, or draws a figure and prints the names of its files, if any of its runs are finished."""
    from elmo_tasks.replication import figures, tables

    if exhibit.startswith("figure"):
        runs = tables.finished_runs(plan, exhibit, arguments.tasks)
        if runs is not None:
            files = figures.draw(exhibit, runs, plan.results / "figures")
            print(*files, *tables.version_notes(runs["version"]), sep="\n")
    elif (made := tables.table_of(plan, exhibit, arguments.tasks)) is not None:
        settings = plan.notes(made.tasks) if made.tasks else []
        _print(tables.TITLES[exhibit], made.rows, [*made.notes, *settings], arguments.format)


def _compare(runs: list["Run"], published: list["Run"], arguments: argparse.Namespace) -> dict[str, str]:
    """Prints the runs next to the same published runs, and returns the problems of those."""
    from elmo_tasks.replication import tables
    from elmo_tasks.replication.train import sort_out

    ours, earlier = sort_out(runs), sort_out(published)
    if ours.scores and earlier.scores:
        rows = tables.side_by_side(tables.runs_of(ours.scores), tables.runs_of(earlier.scores))
        _print(f"Next to {arguments.against}", rows, [], arguments.format)
    return earlier.problems


def _print(title: str, table: "pd.DataFrame", notes: list[str], format: str) -> None:
    below = "" if format == "csv" or not notes else "\n".join(["", *(f"- {note}" for note in notes), ""])
    print(f"{title}\n\n{_FORMATS[format](table)}\n{below}")


def _by_task(text: str) -> tuple[str, dict[str, Any]]:
    """`snli={"trainer.num_epochs": 4}` or, for all tasks, `{"trainer.num_epochs": 4}`."""
    task, content = ("", text) if text.startswith("{") else text.split("=", 1)
    if task not in ("", *TASKS):
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(TASKS)}, got {task!r}")
    return task, json.loads(content)
