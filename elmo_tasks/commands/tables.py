"""`allennlp elmo-tables`: the paper's tables and figures, with our numbers next to the paper's."""

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.jobs import at_least_one
from elmo_tasks.replication.paper import TABLES, TASKS

if TYPE_CHECKING:
    import pandas as pd

    from elmo_tasks.replication.plan import Plan

__all__ = ["Tables"]

_FORMATS: dict[str, Callable[["pd.DataFrame"], str]] = {
    "markdown": lambda made: made.to_markdown(index=False, disable_numparse=True),
    "latex": lambda made: made.to_latex(index=False, escape=True),
    "csv": lambda made: made.to_csv(index=False),
}


@Subcommand.register("elmo-tables")
class Tables(Subcommand):
    """Train the runs of the paper's tables and figures, and print them with the paper's numbers."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=self.__doc__, help=self.__doc__)
        changes: dict[str, Any] = {"action": "append", "default": [], "type": _by_task, "metavar": "[TASK=]JSON"}
        add = sub.add_argument
        add("--table", choices=["1", "2", "3", "5", "6"], action="append", default=[], help="default: all of the plan")
        add("--figure", choices=["1", "2"], action="append", default=[], help="PNG, SVG and CSV in RESULTS/figures")
        add("--plan", default="paper", help="'paper' (default), 'open' or a Jsonnet file: data, settings, seeds")
        add("--tasks", nargs="+", choices=list(TASKS), help="default: all of the plan")
        add("--seeds", type=at_least_one, help="default: the plan's")
        add("--data", help="the folder of the data (default: $ELMO_TASKS_DATA)")
        add("--bilm", help="name or folder (default: the plan's, or $ELMO_TASKS_BILM)")
        add("--results", type=Path, help="the folder of the runs (default: results/PLAN)")
        add("--against", type=Path, help="also print each run next to the same run in this folder")
        add("--overrides", **changes, help="changes of the configs: keys with dots")
        add("--arguments", **changes, help="arguments of training_configs/lib/TASK.libsonnet")
        add("--format", choices=["markdown", "latex", "csv"], default="markdown")
        add("--jobs", type=at_least_one, default=1, help="number of parallel runs")
        add("--dry-run", action="store_true", help="list the runs, and the data that do not exist, without training")
        sub.set_defaults(func=_tables)
        return sub


def _tables(arguments: argparse.Namespace) -> None:
    # Imported here, because pandas, SciPy and matplotlib would slow down every start of `allennlp`.
    from elmo_tasks.configs import missing_files
    from elmo_tasks.replication import tables
    from elmo_tasks.replication.plan import Plan
    from elmo_tasks.replication.train import measure_word_senses, sort_out, train_all

    changes: dict[str, dict[str, Any]] = {}
    for key in ("overrides", "arguments"):
        for task, values in getattr(arguments, key):
            changes.setdefault(task, {}).setdefault(key, {}).update(values)
    exhibits = [f"table {number}" for number in arguments.table] + [f"figure {number}" for number in arguments.figure]
    given = {"data": arguments.data, "bilm": arguments.bilm, "changes": changes, "seeds": arguments.seeds}
    plan = Plan(arguments.plan, results=arguments.results or Path("results", Path(arguments.plan).stem), **given)
    exhibits = exhibits or list(TABLES)
    runs = plan.runs(exhibits, arguments.tasks)
    _, missing, problems = sort_out(runs)
    has_senses = "table 5" not in exhibits or (plan.results / "wsd.json").exists()
    if arguments.dry_run:
        states = {run.name: "interrupted" if any(run.folder.glob("run/model_state_*")) else "to run" for run in missing}
        states |= dict.fromkeys(problems, "refused")
        lines = [f"{states.get(run.name, 'finished'):12} {run.name}" for run in runs]
        lost = (missing_files(run.config, plan.variables["ELMO_TASKS_DATA"]) for run in missing)
        lines += [f"not found    {path}" for path in sorted(set(chain.from_iterable(lost)))]
        print("\n".join(lines + ["to run       word senses"] * (not has_senses)))
    else:
        # SIGTERM also stops the trainings, like Ctrl-C.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        for run, problem in train_all(missing, arguments.jobs):
            print(f"{run.name}: {problem or 'finished'}", file=sys.stderr, flush=True)
            problems |= {run.name: problem} if problem else {}
        if not has_senses:
            try:
                measure_word_senses(plan)
            except subprocess.CalledProcessError as error:
                problems["word senses"] = f"failed with status {error.returncode}"
        for exhibit in exhibits:
            _show(exhibit, plan, arguments)
        if arguments.against:
            published = Plan(arguments.plan, results=arguments.against, **given).runs(exhibits, arguments.tasks)
            (earlier, _, refused), (found, _, _) = sort_out(published), sort_out(runs)
            problems = refused | problems
            if earlier and found:
                made = tables.side_by_side(tables.runs_of(found), tables.runs_of(earlier))
                print(f"Next to {arguments.against}\n\n{_FORMATS[arguments.format](made)}\n")
    if problems:
        sys.exit("\n".join(["Missing:", *(f"{name}: {problem}" for name, problem in problems.items())]))


def _show(exhibit: str, plan: "Plan", arguments: argparse.Namespace) -> None:
    from elmo_tasks.replication import figures, tables
    from elmo_tasks.replication.train import sort_out, word_senses

    if exhibit == "table 5":
        scores = word_senses(plan)
        if scores is None:
            return
        made, notes = tables.word_sense_table(scores), tables.word_sense_notes(scores)
    else:
        found, _, _ = sort_out(plan.runs([exhibit], arguments.tasks))
        if not found:
            return
        runs = tables.runs_of(found)
        if exhibit.startswith("figure"):
            print(*figures.draw(exhibit, runs, plan.results / "figures"), sep="\n")
            return
        sizes = {name: task.get("size", "–") for name, task in plan.tasks.items()}
        made = tables.table(exhibit, runs, sizes)
        notes = [*tables.notes(exhibit, runs), *plan.notes(set(runs["task"]))]
    below = "" if arguments.format == "csv" else "\n".join(["", *(f"- {note}" for note in notes), ""])
    print(f"{tables.TITLES[exhibit]}\n\n{_FORMATS[arguments.format](made)}\n{below}")


def _by_task(text: str) -> tuple[str, dict[str, Any]]:
    """`snli={"trainer.num_epochs": 4}` or, for all tasks, `{"trainer.num_epochs": 4}`."""
    task, content = ("", text) if text.startswith("{") else text.split("=", 1)
    if task not in ("", *TASKS):
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(TASKS)}, got {task!r}")
    return task, json.loads(content)
