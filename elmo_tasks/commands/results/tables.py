"""`allennlp elmo-tables`: the paper's tables and figures, with our numbers next to the paper's."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.commands.results.tables_of_plan import make_plan
from elmo_tasks.environment import small_data_notice
from elmo_tasks.files.sealed_json import read_sealed
from elmo_tasks.printable import one_line, printable_lines
from elmo_tasks.progress import progress_bar
from elmo_tasks.replication import (
    RENDERERS,
    TASK_TEXTS,
    TASKS,
    TASKS_OF,
    Exhibit,
    Experiment,
    FinishedRun,
    Run,
    draw,
    experiment_of,
    fine_tuning_results,
    fine_tuning_table,
    fine_tunings,
    plan,
    status,
    table_of,
    train_runs,
    word_senses,
    word_senses_table,
)

__all__ = ["Tables"]

_SEEDS = 5

logger = logging.getLogger(__name__)


@Subcommand.register("elmo-tables")
class Tables(Subcommand):
    """
    Trains the runs of a table or a figure of the paper that are not trained yet, and prints it with the paper's numbers
    next to ours.

    Registered as a `Subcommand` with name "elmo-tables".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Train the runs of a table or a figure of the paper, and print it with the paper's numbers."
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        what = sub.add_mutually_exclusive_group()
        what.add_argument("--table", choices=["1", "2", "3", "5", "6", "7"])
        what.add_argument("--figure", choices=["1", "2"], help="written to RESULTS/figures as PNG, SVG and CSV")
        sub.add_argument("--plan", metavar="PLAN", help="a plan that ships, as 'open', or a file; alone, all of it")
        sub.add_argument("--tasks", nargs="+", metavar="TASK", choices=list(TASKS), help=f"some of {', '.join(TASKS)}")
        sub.add_argument("--seeds", type=int, metavar="N", help=f"seeds 1 to N (default: {_SEEDS})")
        sub.add_argument("--sizes", nargs="+", default=[], help="figure 1: parts of the training set, as 1000 or 10%%")
        sub.add_argument("--data", metavar="ROOT", help="the data (default: $ELMO_TASKS_DATA)")
        sub.add_argument(
            "--bilm",
            metavar="BILM",
            help="name, folder or (not for tables 5 and 7) URL of the biLM (default: $ELMO_TASKS_BILM)",
        )
        sub.add_argument(
            "--contextual",
            action="append",
            default=[],
            type=_contextual,
            metavar="NAME=MODEL",
            help="table 1: a column for what else is at ELMo's places: the folder of a biLM, or a transformer by its "
            "folder or its name on the Hugging Face hub",
        )
        sub.add_argument("--results", type=Path, help="folder to train in (default: output/tables, output/PLAN)")
        sub.add_argument(
            "--runs", type=Path, metavar="FOLDER", help="files of a plan's finished runs (default: results/runs)"
        )
        sub.add_argument("--retry-failed", action="store_true", help="train the runs of a plan that have failed again")
        by_task: dict[str, Any] = {"action": "append", "default": [], "type": _by_task, "metavar": "[TASK=]JSON"}
        sub.add_argument("--overrides", **by_task, help="override the configs; names with dots")
        sub.add_argument("--arguments", **by_task, help="further arguments of the templates")
        sub.add_argument(
            "--name",
            action="append",
            default=[],
            type=_name,
            metavar="TASK=NAME",
            help="the data's name, for the caption",
        )
        sub.add_argument("--wordnet", type=Path, metavar="FOLDER", help="table 5: as for `allennlp elmo-wsd`")
        sub.add_argument("--format", choices=[*RENDERERS, "json"], help="of tables (default: markdown)")
        sub.add_argument("--dry-run", action="store_true", help="show the runs and how far they are, and train nothing")
        sub.add_argument("--jobs", type=int, metavar="N", help="runs at once (default: 1; on Ray what it has room for)")
        sub.add_argument("--ray", metavar="ADDRESS", help="train on the Ray cluster there; 'local' makes one here")
        sub.set_defaults(func=_tables, parser=sub)
        return sub


def _tables(arguments: argparse.Namespace) -> None:
    if not (arguments.plan or arguments.table or arguments.figure):
        arguments.parser.error("one of --plan, --table and --figure is needed")
    failed = _make(arguments)
    if failed:
        names = ", ".join(failed)
        sys.exit(f"allennlp elmo-tables: {len(failed)} runs are not finished, and are missing above: {names}")


def _make(arguments: argparse.Namespace) -> list[str]:
    """Makes and prints the table or figure; returns the names of the runs that are missing in it."""
    exhibit = _exhibit(arguments)
    if arguments.format is None:
        arguments.format = "markdown"
    elif arguments.figure:
        raise ValueError("a figure is written as PNG, SVG and CSV: omit --format, which is for tables")
    if arguments.plan:
        return make_plan(arguments, exhibit)
    assert exhibit is not None
    _check(exhibit, arguments)
    if arguments.data is None and (notice := small_data_notice()):
        logger.warning(notice)
    experiment = experiment_of(
        data=arguments.data,
        bilm=arguments.bilm,
        results=arguments.results or Path("output/tables"),
        overrides=_merged(arguments.overrides),
        arguments=_merged(arguments.arguments),
        names=dict(arguments.name),
    )
    if exhibit is Exhibit.TABLE_5:
        _print_word_senses(experiment, arguments)
        return []
    if exhibit is Exhibit.TABLE_7:
        return _make_fine_tunings(experiment, arguments)
    seeds = _SEEDS if arguments.seeds is None else arguments.seeds
    runs = plan(experiment, exhibit, arguments.tasks or TASKS_OF[exhibit], seeds, arguments.sizes, arguments.contextual)
    if arguments.dry_run:
        _print_plan(runs, experiment)
        return []
    trained, failed = _trained(experiment, runs, arguments)
    finished = [FinishedRun.of(run, with_layers=exhibit is Exhibit.FIGURE_2) for run in trained]
    if arguments.table:
        table, result_file = table_of(exhibit, finished)
        print(printable_lines(result_file if arguments.format == "json" else RENDERERS[arguments.format](table)))
    else:
        print(printable_lines("\n".join(map(str, draw(exhibit, finished, experiment.total, experiment.results)))))
    return failed


def _exhibit(arguments: argparse.Namespace) -> Exhibit | None:
    if arguments.table:
        return Exhibit(f"table {arguments.table}")
    return Exhibit(f"figure {arguments.figure}") if arguments.figure else None


def _check(exhibit: Exhibit, arguments: argparse.Namespace) -> None:
    """Refuses options that would be ignored, and what `--dry-run` would not see."""
    if given := [f"--{name}" for name in ("runs", "retry_failed") if getattr(arguments, name)]:
        raise ValueError(f"{given[0].replace('_', '-')} is for the runs of a plan: name one with --plan, or omit it")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ValueError(f"at least one run must be trained at once, but --jobs is {arguments.jobs}")
    of_runs = ("tasks", "seeds", "sizes", "overrides", "arguments", "name", "contextual", "jobs", "ray")
    given = [name for name in of_runs if getattr(arguments, name) not in (None, [])]
    if exhibit is Exhibit.TABLE_5 and given:
        raise ValueError(f"table 5 is one measurement, without trainings: omit --{given[0]}")
    of_seeds = ("seeds", "sizes", "overrides", "arguments", "contextual")
    given = [name for name in of_seeds if getattr(arguments, name) not in (None, [])]
    if exhibit is Exhibit.TABLE_7 and given:
        raise ValueError(f"table 7 is one epoch of the biLM on each text: omit --{given[0]}")
    if exhibit is not Exhibit.TABLE_5 and arguments.wordnet is not None:
        raise ValueError("WordNet is for table 5: omit --wordnet")


def _print_plan(runs: Sequence[Run], experiment: Experiment) -> None:
    states = [status(run) for run in runs]
    for run, state in zip(runs, states, strict=True):
        print(f"{state:12} {run.name}")
    n_missing = sum(state != "finished" for state in states)
    print(f"{n_missing} of {len(runs)} runs to train in {experiment.results}")


def _trained(experiment: Experiment, runs: Sequence[Run], arguments: argparse.Namespace) -> tuple[list[Run], list[str]]:
    """The finished runs and the names of the others, once what was missing is trained."""
    failed = _train(experiment, runs, arguments)
    trained = [run for run in runs if run.name not in failed]
    if not trained:
        raise ValueError(f"none of the {len(runs)} runs is finished: see the reasons above")
    return trained, failed


def _train(experiment: Experiment, runs: Sequence[Run], arguments: argparse.Namespace) -> list[str]:
    """Trains what is missing, with a bar over the runs, and prints at once what failed; returns the names of these."""
    failed: list[str] = []
    missing = [run for run in runs if status(run) != "finished"]
    if not missing:
        return failed
    outcomes = train_runs(experiment, missing, jobs=arguments.jobs, ray=arguments.ray)
    with progress_bar(len(runs), True, "runs", done=len(runs) - len(missing)) as advance, closing(outcomes):
        for outcome in outcomes:
            advance(1)
            if outcome.error is not None:
                print(one_line(f"{outcome.run.name}: {outcome.error}"), file=sys.stderr)
                failed.append(outcome.run.name)
    return sorted(failed)


def _print_word_senses(experiment: Experiment, arguments: argparse.Namespace) -> None:
    run = word_senses(experiment, arguments.wordnet)
    is_finished = run.is_finished()
    if arguments.dry_run:
        print(f"{'finished' if is_finished else 'to run':12} {run.scores.parent.name}")
        return
    if not is_finished:
        run.measure()
    if arguments.format == "json":
        print(printable_lines(json.dumps(read_sealed(run.scores), indent=1, ensure_ascii=False)))
    else:
        print(printable_lines(RENDERERS[arguments.format](word_senses_table(run.scores))))


def _make_fine_tunings(experiment: Experiment, arguments: argparse.Namespace) -> list[str]:
    """Makes and prints Table 7; returns the names of the runs that are missing in it."""
    known = dict.fromkeys(text.task for text in TASK_TEXTS.values())
    if unknown := [task for task in arguments.tasks or () if task not in known]:
        raise ValueError(f"table 7 is about {', '.join(known)}, but not about {unknown[0]!r}")
    runs = fine_tunings(experiment, [text for text in TASK_TEXTS.values() if text.task in (arguments.tasks or known)])
    if arguments.dry_run:
        _print_plan(runs, experiment)
        return []
    trained, failed = _trained(experiment, runs, arguments)
    content = fine_tuning_results(trained)
    if arguments.format == "json":
        print(printable_lines(json.dumps(content, indent=1, ensure_ascii=False)))
    else:
        print(printable_lines(RENDERERS[arguments.format](fine_tuning_table(content))))
    return failed


def _by_task(text: str) -> tuple[str, dict[str, Any]]:
    """`snli={"trainer.num_epochs": 4}` or, for all tasks, `{"trainer.num_epochs": 4}`."""
    task, content = ("", text) if text.lstrip().startswith("{") else text.split("=", 1) if "=" in text else ("", text)
    try:
        values = json.loads(content)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} must be [TASK=]JSON, but its JSON is not valid: {error}") from None
    if not isinstance(values, dict):
        raise argparse.ArgumentTypeError(f'{text!r} must be a JSON object, as {{"trainer.num_epochs": 4}}')
    return task, values


def _merged(given: list[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for task, values in given:
        merged.setdefault(task, {}).update(values)
    return merged


def _contextual(text: str) -> tuple[str, str]:
    """`bert=bert-base-cased`."""
    name, _, model = text.partition("=")
    if not name or not model:
        raise argparse.ArgumentTypeError(f"must be NAME=MODEL, as bert=bert-base-cased, but is {text!r}")
    folder = Path(model).expanduser()
    # Trainings may run in another folder.
    return name, str(folder.resolve()) if folder.is_dir() else model


def _name(text: str) -> tuple[str, str]:
    task, separator, name = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be TASK=NAME, as ner=WNUT-17")
    return task, name
