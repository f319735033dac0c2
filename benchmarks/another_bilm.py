"""
A column of Table 1 for another biLM, as one that was fine-tuned on a task's text, next to the runs of
`training_configs/open.jsonnet` that are finished: with its settings, data and seeds.
`ELMO_TASKS_DATA=DATA python benchmarks/another_bilm.py fine_tuned BILM --tasks snli --output table1.json`.
Or for the same biLM used in another way: `--overrides '{"model.bilm.stateful": true}'`.

Scores of other tasks and columns that the output has are kept. A run that is finished is not trained again, one that
was interrupted is resumed.
"""

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.replication import (
    SIX_TASKS,
    TASKS,
    Exhibit,
    FinishedRun,
    Replication,
    Results,
    Run,
    Variant,
    layout,
    replication_of,
    status,
    train_runs,
)
from elmo_tasks.replication.train.record import read_record
from elmo_tasks.vectors.pretrained import pretrained_files


def with_earlier(new: Results, path: Path) -> Results:
    """Adds the scores of an earlier file; a new score takes precedence."""
    if not path.exists():
        return new
    earlier = Results.from_file(path)
    known = {(row["task"], row["variant"], row["seed"]) for row in new.runs}
    kept = [row for row in earlier.runs if (row["task"], row["variant"], row["seed"]) not in known]
    about = {
        task: {**earlier.about.get(task, {}), **new.about.get(task, {})} for task in {**earlier.about, **new.about}
    }
    return Results(
        new.table,
        sorted([*kept, *new.runs], key=lambda row: (list(TASKS).index(row["task"]), row["seed"], row["variant"])),
        earlier.summaries,
        about,
        sorted({*earlier.versions, *new.versions}),
        list(dict.fromkeys([*earlier.notes, *new.notes])),
        sorted({*earlier.made, *new.made}),
    )


def write(finished: list[FinishedRun], made: str, path: Path) -> None:
    results = Results.of_runs(Exhibit.TABLE_1, finished)
    results.made = [made]
    results = with_earlier(results, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(results.to_json(asdict(layout(results))) + "\n", "utf-8")


def finished_of_plan(replication: Replication, task: str, n_seeds: int) -> list[FinishedRun]:
    """Those without a biLM, and with that of the plan."""
    runs = [run for run in replication.runs_of([Exhibit.TABLE_1], [task]) if run.seed <= n_seeds]
    return replication.evidence.finished(runs)


def trained(run: Run, name: str, overrides: dict[str, Any]) -> FinishedRun:
    """
    A run that is finished, with the commits and machines that its record has. What overrides the configs of this column
    alone is said of its biLM, not of the task.
    """
    training = (read_record(run.folder) or {})["training"]
    about = {**run.about, "overrides": {k: v for k, v in run.about["overrides"].items() if k not in overrides}}
    if overrides:
        about[f"biLM {name}"] += f" with {json.dumps(overrides)}"
    return replace(
        FinishedRun.of(run), about=about, commits=tuple(training["commits"]), machines=tuple(training["machines"])
    )


def json_object(text: str) -> dict[str, Any]:
    """Of an option."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"must be JSON, but is {text!r}: {error}") from None
    if not isinstance(content, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, but is {text!r}")
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the column")
    parser.add_argument("bilm", help="the biLM: its name, or its folder, whose name captions have")
    parser.add_argument("--tasks", nargs="+", choices=[*SIX_TASKS], required=True)
    parser.add_argument("--seeds", type=int, default=3, help="seeds up to this one; default: 3")
    parser.add_argument("--first-seed", type=int, default=1, help="those before it stay as the output has them")
    parser.add_argument("--overrides", type=json_object, default={}, help="of the configs of this column")
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="the files of the plan's finished runs")
    parser.add_argument("--results", type=Path, default=Path("output/another_bilm"), help="the folder to train in")
    parser.add_argument("--output", type=Path, required=True, help="a result file, written after each run")
    arguments = parser.parse_args()
    try:
        add_column(arguments)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


def add_column(arguments: argparse.Namespace) -> None:
    bilm = pretrained_files(arguments.bilm)[0].parent.absolute()
    replication = replication_of("open", data=None, results=arguments.results, runs=arguments.runs)
    seeds = range(arguments.first_seed, arguments.seeds + 1)
    if not seeds:
        raise ValueError(f"--first-seed must be at most --seeds, {arguments.seeds}, but is {arguments.first_seed}")
    of_plan = replication.experiment
    for task in arguments.tasks:
        if taken := sorted(set(arguments.overrides) & set(of_plan.overrides.get(task, {}))):
            raise ValueError(f"--overrides must leave the plan's settings as they are, but has {taken[0]}: take it out")
        overrides = {task: {**of_plan.overrides.get(task, {}), **arguments.overrides}}
        experiment = replace(of_plan, overrides=overrides)
        if problem := replication.missing_data.get(task):
            raise ValueError(problem)
        variant = Variant.elmo(TASKS[task], contextual=(arguments.name, str(bilm)))
        runs = [experiment.run(task, variant, seed) for seed in seeds]
        finished = finished_of_plan(replication, task, arguments.seeds)
        for run in runs:
            if status(run) != "finished":
                for outcome in train_runs(experiment, [run]):
                    if outcome.error is not None:
                        raise ValueError(f"{run.name} {outcome.error}")
            finished.append(trained(run, arguments.name, arguments.overrides))
            print(f"{run.name}   dev {finished[-1].dev:.2f}   test {finished[-1].test:.2f}", flush=True)
            machines = ", ".join(finished[-1].machines)
            made = f"{TASKS[task].title}: {arguments.name} on {machines}; the others are runs of the plan."
            write(finished, made, arguments.output)


if __name__ == "__main__":
    main()
