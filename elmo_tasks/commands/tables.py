"""`allennlp elmo-tables`: the paper's tables and figures with our numbers beside the paper's."""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand
from allennlp.common.tqdm import Tqdm

from elmo_tasks.commands.errors import errors_in_one_line
from elmo_tasks.environment import config_variables
from elmo_tasks.replication import (
    RENDERERS,
    TASKS,
    TASKS_OF,
    Experiment,
    Outcome,
    Results,
    Run,
    Table,
    WordSenseRun,
    by_epochs,
    by_sizes,
    draw_curves,
    draw_mixes,
    layout,
    mixes,
    plan,
    run_here,
    run_on_ray,
    status,
    word_senses_table,
)

__all__ = ["Tables"]


@Subcommand.register("elmo-tables")
class Tables(Subcommand):
    """
    Trains what a table or a figure of the paper needs and is not trained yet, and prints it with the paper's numbers
    beside ours.

    Registered as a `Subcommand` with name "elmo-tables".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Train what a table or a figure of the paper needs, and print it beside the paper's numbers."
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        what = sub.add_mutually_exclusive_group(required=True)
        what.add_argument("--table", choices=["1", "2", "3", "5", "6"])
        what.add_argument("--figure", choices=["1", "2"], help="written to RESULTS/figures as PNG, SVG and CSV")
        sub.add_argument("--tasks", nargs="+", metavar="TASK", choices=list(TASKS), help=f"some of {', '.join(TASKS)}")
        sub.add_argument("--seeds", type=int, metavar="N", help="seeds 1 to N (default: 5)")
        sub.add_argument("--sizes", nargs="+", default=[], help="figure 1: parts of the training set, as 1000 or 10%%")
        sub.add_argument("--data", metavar="ROOT", help="the data (default: $ELMO_TASKS_DATA)")
        sub.add_argument(
            "--bilm", metavar="PATH", help="folder (or URL, but for table 5) of the biLM (default: $ELMO_TASKS_BILM)"
        )
        sub.add_argument("--results", type=Path, default=Path("output/tables"), help="folder of all runs")
        by_task: dict[str, Any] = {"action": "append", "default": [], "type": _by_task, "metavar": "[TASK=]JSON"}
        sub.add_argument("--overrides", **by_task, help="laid over the configs; names with dots")
        sub.add_argument("--arguments", **by_task, help="further arguments of the templates")
        sub.add_argument(
            "--name", action="append", default=[], type=_name, metavar="TASK=NAME", help="what the data is"
        )
        sub.add_argument("--wordnet", type=Path, metavar="FOLDER", help="table 5: as for `allennlp elmo-wsd`")
        sub.add_argument("--format", choices=[*RENDERERS, "json"], default="markdown")
        sub.add_argument("--dry-run", action="store_true", help="show the runs and how far they are, and train nothing")
        sub.add_argument("--jobs", type=int, metavar="N", help="runs at once (default: 1; on Ray what it has room for)")
        sub.add_argument("--ray", metavar="ADDRESS", help="train on the Ray cluster there; 'local' makes one here")
        sub.set_defaults(func=_tables)
        return sub


def _tables(arguments: argparse.Namespace) -> None:
    with errors_in_one_line("elmo-tables"):
        failed = _made(arguments)
    if failed:
        names = ", ".join(failed)
        sys.exit(f"allennlp elmo-tables: {len(failed)} runs are not finished, and left out above: {names}")


def _made(arguments: argparse.Namespace) -> list[str]:
    """Makes what is asked for; the names of the runs that it is without."""
    _check(arguments)
    setting = _setting(arguments)
    if arguments.table == "5":
        _word_senses(arguments, setting)
        return []
    what = f"table {arguments.table}" if arguments.table else f"figure {arguments.figure}"
    runs = plan(setting, what, arguments.tasks or TASKS_OF[what], _seeds(arguments), arguments.sizes)
    states = {run.name: status(run) for run in runs}
    if arguments.dry_run:
        for run in runs:
            print(f"{states[run.name]:12} {run.name}")
        print(
            f"{sum(state != 'finished' for state in states.values())} of {len(runs)} runs to train in {setting.results}"
        )
        return []
    missing = [run for run in runs if states[run.name] != "finished"]
    for run in missing:
        if run.size is not None:
            setting.write_subset(run.task, run.size)
    failed = {outcome.run.name for outcome in _outcomes(missing, arguments) if outcome.error is not None}
    finished = [run for run in runs if run.name not in failed]
    if not finished:
        raise ValueError(f"none of the {len(runs)} runs is finished: see the reasons above")
    if arguments.table:
        _print_table(Results.of_runs(what, finished), arguments.format)
    else:
        _draw(arguments.figure, finished, setting)
    return sorted(failed)


def _check(arguments: argparse.Namespace) -> None:
    """Refuses what would be ignored."""
    of_runs = ("tasks", "seeds", "sizes", "overrides", "arguments", "name", "jobs", "ray")
    given = [name for name in of_runs if getattr(arguments, name) not in (None, [])]
    if arguments.table == "5" and given:
        raise ValueError(f"table 5 is one measurement, without trainings: leave --{given[0]} away")
    if arguments.table != "5" and arguments.wordnet is not None:
        raise ValueError("WordNet is for table 5: leave --wordnet away")


def _seeds(arguments: argparse.Namespace) -> int:
    return 5 if arguments.seeds is None else arguments.seeds


def _outcomes(runs: list[Run], arguments: argparse.Namespace) -> Iterable[Outcome]:
    """Trains, with a bar over the runs, and says at once what went wrong."""
    if not runs:
        return
    if arguments.ray is None:
        outcomes = run_here(runs, jobs=1 if arguments.jobs is None else arguments.jobs)
    else:
        outcomes = run_on_ray(runs, address=arguments.ray, jobs=arguments.jobs)
    for outcome in Tqdm.tqdm(outcomes, total=len(runs), desc="runs", unit="run"):
        if outcome.error is not None:
            print(f"{outcome.run.name}: {outcome.error}", file=sys.stderr)
        yield outcome


def _word_senses(arguments: argparse.Namespace, setting: Experiment) -> None:
    data, bilm = Path(setting.variables["ELMO_TASKS_DATA"], "wsd"), setting.variables["ELMO_TASKS_BILM"]
    run = WordSenseRun(setting.results, data, bilm, arguments.wordnet)
    if arguments.dry_run:
        print(f"{'finished' if run.is_finished() else 'to run':12} {run.scores.parent.name}")
        return
    if not run.is_finished():
        run.measure()
    if arguments.format == "json":
        print(run.scores.read_text(encoding="utf-8"), end="")
    else:
        print(RENDERERS[arguments.format](word_senses_table(run.scores)))


def _print_table(results: Results, form: str) -> None:
    table: Table = layout(results)
    print(results.to_json(asdict(table)) if form == "json" else RENDERERS[form](table))


def _draw(figure: str, runs: list[Run], setting: Experiment) -> None:
    folder = setting.results / "figures"
    if figure == "1":
        files = draw_curves(by_sizes(runs, setting.total), "size", folder / "figure1_sizes")
        # Where only runs on parts of the training set are finished, there is nothing to draw by epochs.
        if epochs := by_epochs(runs):
            files += draw_curves(epochs, "epoch", folder / "figure1_epochs")
    else:
        files = draw_mixes(mixes(runs), folder / "figure2")
    print(*files, sep="\n")


def _setting(arguments: argparse.Namespace) -> Experiment:
    given = {"ELMO_TASKS_DATA": arguments.data, "ELMO_TASKS_BILM": arguments.bilm}
    # Evaluated configs name their files, and are read in other processes: nothing may depend on the folder we are in.
    absolute = {name: path if "://" in path else os.path.abspath(path) for name, path in given.items() if path}
    variables = config_variables({**os.environ, **absolute})
    for name in given:
        path = variables[name]
        if "://" in path:
            continue
        if not os.path.isdir(path):
            raise FileNotFoundError(f"{name} (--{name.split('_')[-1].lower()}) must be a folder, but {path!r} is none")
        variables[name] = os.path.abspath(path)
    return Experiment(
        variables,
        arguments.results.absolute(),
        overrides=_merged(arguments.overrides),
        arguments=_merged(arguments.arguments),
        names=dict(arguments.name),
    )


def _by_task(text: str) -> tuple[str, dict[str, Any]]:
    """`snli={"trainer.num_epochs": 4}` or, for all tasks, `{"trainer.num_epochs": 4}`."""
    task, content = ("", text) if text.lstrip().startswith("{") else text.split("=", 1) if "=" in text else ("", text)
    try:
        values = json.loads(content)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} must be [TASK=]JSON, but its JSON is none: {error}") from None
    if not isinstance(values, dict):
        raise argparse.ArgumentTypeError(f'{text!r} must be a JSON object, as {{"trainer.num_epochs": 4}}')
    return task, values


def _merged(given: list[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for task, values in given:
        merged.setdefault(task, {}).update(values)
    return merged


def _name(text: str) -> tuple[str, str]:
    task, separator, name = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be TASK=NAME, as ner=WNUT-17")
    return task, name
