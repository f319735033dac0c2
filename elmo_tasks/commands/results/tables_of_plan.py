"""`allennlp elmo-tables --plan`: all tables and figures of a plan."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_tasks.printable import one_line, printable_lines
from elmo_tasks.progress import progress_bar
from elmo_tasks.replication import FIGURES, RENDERERS, Exhibit, Measurement, Replication, Run, replication_of

__all__ = ["make_plan"]

_RUNS = Path("results/runs")
# Options that the plan takes the place of.
_OF_PLAN = ("sizes", "overrides", "arguments", "name", "bilm", "contextual", "seeds", "wordnet")


def make_plan(arguments: argparse.Namespace, exhibit: Exhibit | None) -> list[str]:
    """
    Trains what a plan, or one table or figure of it, still needs, and prints what is made of the finished runs.

    # Parameters

    arguments
        Those of the command.
    exhibit
        The one that is asked for; `None` makes all of the plan.

    # Returns

    `List[str]`
        The names of the runs, and of files, that are missing in it.

    # Raises

    `ValueError`
        If an option is given that the plan takes the place of, or an exhibit or task is not in the plan.
    """
    if given := [name for name in _OF_PLAN if getattr(arguments, name) not in (None, [])]:
        raise ValueError(f"the plan says what --{given[0]} would: omit it, or change a copy of the plan")
    replication = replication_of(
        arguments.plan, data=arguments.data, results=arguments.results, runs=(arguments.runs or _RUNS).absolute()
    )
    tasks = _tasks(replication, arguments.tasks)
    exhibits = _exhibits(replication, exhibit, tasks)
    runs = replication.runs_of(exhibits, tasks)
    _warn(replication)
    measurements = [replication.measurements[shown] for shown in exhibits if shown in replication.measurements]
    if arguments.dry_run:
        _print_states(replication, runs, measurements)
        return []
    _measure_sentences(replication, runs)
    _train(replication, runs, arguments)
    _measure(measurements, arguments)
    # Other processes may have finished some of them since.
    replication.evidence.read()
    # A failed or refused run of earlier calls is as missing as one of this call.
    missing = [run.name for run in runs if replication.evidence.state(run) != "finished"]
    missing += [measurement.name for measurement in measurements if measurement.state() != "finished"]
    for shown in exhibits:
        _print(replication, shown, tasks, arguments.format)
    return [*missing, *(name for name in replication.evidence.refused if name not in missing)]


def _exhibits(replication: Replication, exhibit: Exhibit | None, tasks: Sequence[str] | None) -> list[Exhibit]:
    known = replication.plan.exhibits
    if exhibit is not None and exhibit not in known:
        raise ValueError(f"{replication.plan.path} is for {', '.join(known)}, but not for {exhibit}")
    wanted = known if exhibit is None else [exhibit]
    names = tasks or replication.plan.task_names
    # Tables of the biLM alone have no tasks.
    without_tasks = replication.measurements if tasks is None else {}
    found = [shown for shown in wanted if shown in without_tasks or replication.plan.runs([shown], names)]
    if not found:
        raise ValueError(f"{replication.plan.path} has nothing of {', '.join(tasks or ())} for {exhibit}")
    return found


def _tasks(replication: Replication, tasks: Sequence[str] | None) -> Sequence[str] | None:
    known = replication.plan.task_names
    if unknown := [task for task in tasks or () if task not in known]:
        raise ValueError(f"{replication.plan.path} is about {', '.join(known)}, but not about {unknown[0]!r}")
    return tasks


def _warn(replication: Replication) -> None:
    """Says once what was not compared, and which files are refused."""
    problems = dict.fromkeys(replication.missing_data.values())
    for problem in problems:
        tasks = [task for task, found in replication.missing_data.items() if found == problem]
        print(one_line(f"digests of the data are not compared for {', '.join(tasks)}: {problem}"), file=sys.stderr)
    for name, problem in replication.evidence.refused.items():
        print(one_line(f"{name}: {problem}"), file=sys.stderr)


def _print_states(replication: Replication, runs: Sequence[Run], measurements: Sequence[Measurement]) -> None:
    for measurement in measurements:
        print(f"{measurement.state():12} {measurement.name}")
    states = [replication.evidence.state(run) for run in runs]
    for run, state in zip(runs, states, strict=True):
        reason = replication.evidence.reason(run) if state == "failed" else None
        print(f"{state:12} {run.name}" + ("" if reason is None else f": {one_line(reason)}"))
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    print(f"{len(runs)} runs: {', '.join(f'{n} {state}' for state, n in counts.items())}")


def _train(replication: Replication, runs: Sequence[Run], arguments: argparse.Namespace) -> None:
    missing = replication.to_train(runs, retry_failed=arguments.retry_failed)
    for run in () if arguments.retry_failed else runs:
        if replication.evidence.state(run) == "failed":
            reason = f"has failed, and is trained again with --retry-failed: {replication.evidence.reason(run)}"
            print(one_line(f"{run.name}: {reason}"), file=sys.stderr)
    if not missing:
        return
    outcomes = replication.train(missing, jobs=arguments.jobs, ray=arguments.ray)
    with progress_bar(len(runs), True, "runs", done=len(runs) - len(missing)) as advance, closing(outcomes):
        for outcome in outcomes:
            advance(1)
            if outcome.error is not None:
                print(one_line(f"{outcome.run.name}: {outcome.error}"), file=sys.stderr)
            else:
                # At once: the folders of the runs may be gone before all of them are trained.
                _measure_sentences(replication, [outcome.run])


def _measure(measurements: Sequence[Measurement], arguments: argparse.Namespace) -> None:
    for measurement in measurements:
        try:
            problem = measurement.problem()
            if problem is None and measurement.state() != "finished":
                problem = measurement.missing
                if problem is None:
                    measurement.measure(jobs=arguments.jobs, ray=arguments.ray)
        except (ConfigurationError, ValueError, OSError) as error:
            problem = str(error)
        if problem is not None:
            print(one_line(f"{measurement.name}: {problem}"), file=sys.stderr)


def _measure_sentences(replication: Replication, runs: Sequence[Run]) -> None:
    for outcome in replication.measure_sentences(runs):
        if outcome.error is not None:
            message = f"{outcome.run.name}: its sentences cannot be compared with those of other runs: {outcome.error}"
            print(one_line(message), file=sys.stderr)


def _print(replication: Replication, exhibit: Exhibit, tasks: Sequence[str] | None, form: str) -> None:
    if exhibit in FIGURES:
        files = replication.draw(exhibit, tasks)
        print(printable_lines("\n".join(map(str, files)) or f"{exhibit}: no run is finished yet"))
        return
    made = replication.table(exhibit, tasks)
    if made is None:
        print(f"{exhibit}: no run is finished yet")
        return
    table, result_file = made
    print(printable_lines(result_file if form == "json" else RENDERERS[form](table)))
    print()
