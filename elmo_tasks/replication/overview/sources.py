"""The result files and runs of a folder, as a report shows them."""

import json
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from allennlp.common.checks import ConfigurationError

from elmo_tasks.files.sealed_json import json_sha256
from elmo_tasks.replication.evidence.measurement import measurement_files
from elmo_tasks.replication.evidence.run_file import RunFile, run_files
from elmo_tasks.replication.plan.exhibit import Exhibit, tasks_of
from elmo_tasks.replication.plan.fine_tuning import FINE_TUNED
from elmo_tasks.replication.plan.plan import variants_of
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.plan.variant import Variant, name_of_other
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.layout import layout
from elmo_tasks.replication.report.result_file import TABLES_WITHOUT_RUNS, exhibit_without_runs
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.train.record import is_whole, read_record

__all__ = ["ReportedRun", "Sources", "read_sources"]

_RECORD = "record.json"
_DIGEST, _RUN = "digest of ", "digest of the run"
_CONFIG, _COMPUTATION = f"{_DIGEST}the config", f"{_DIGEST}what the code computes"
_ARGUMENTS, _OVERRIDES = "arguments of the template", "overrides of the config"
_TABLES = (Exhibit.TABLE_1, Exhibit.TABLE_2, Exhibit.TABLE_3, Exhibit.TABLE_6)
_ERRORS = (ValueError, OSError, ConfigurationError)


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """
    # Parameters

    task, variant
        Their names.
    seed
        `None` if only the mean over seeds was kept.
    size
        How much of the training set; `None` is all of it.
    table
        The title of the table whose result file it is from: those of two tables may be of other data or settings.
        `None`: it has a file or folder of its own.
    dev, test
        In percent; a text for a mean.
    facts
        What else is known of it, by its name: commit, digests, versions and so on.
    config
        Its config, as JSON; `None` if it is not known.
    finished
        All scores; `None` for one of a result file.
    training_size
        How large the whole training set is; `None` if that is not known.
    """

    task: str
    variant: str
    seed: int | None
    size: int | None = None
    table: str | None = None
    dev: float | str | None
    test: float | str | None
    facts: dict[str, str] = field(default_factory=dict)
    config: str | None = None
    finished: FinishedRun | None = None
    training_size: int | None = None


@dataclass(frozen=True)
class Sources:
    """
    # Parameters

    tables
        In the paper's order.
    runs
        All, in the order of tasks, tables, variants, sizes and seeds.
    problems
        Sentences on files that could not be read.
    """

    tables: list[Table]
    runs: list[ReportedRun]
    problems: list[str]


def read_sources(folder: Path, result_files: Sequence[Path] | None = None, without: Collection[str] = ()) -> Sources:
    """
    # Parameters

    folder
        Result files (`table*.json`), run files (`runs/TASK/VARIANT/SEED.json`) and folders of runs, as `allennlp
        elmo-tables` makes them; whatever of these is there.
    result_files
        `None`: those of the folder.
    without
        Names of runs, as `snli/both/1`, whose run files do not count.

    # Returns

    `Sources`
        All that can be read.

    # Raises

    `FileNotFoundError`
        If there is no such folder.
    `ValueError`
        If there is nothing in it.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there must be a folder of results '{folder}', but there is none")
    problems: list[str] = []
    tables: dict[str, Table] = {}
    runs: list[ReportedRun] = []
    files = folder / "runs"
    if result_files is None:
        result_files = [*sorted(folder.glob("table*.json")), *measurement_files(files)]
    for path in result_files:
        try:
            table, of_table = _of_result_file(path)
            if table.title in tables:
                raise ValueError(
                    f"{path} has the {table.title} that another file has too, and is left out: move it to a folder of "
                    "its own"
                )
            tables[table.title] = table
            runs += of_table
        except _ERRORS as error:
            problems.append(str(error))
        except (AttributeError, KeyError, TypeError) as error:
            problems.append(f"{path} must be a file of results, but has a value of another type: {error}")
    found: dict[tuple[Any, ...], list[tuple[Path, ReportedRun]]] = {}
    of_files = [path for path in run_files(files) if _name(path, files) not in without]
    # The biLMs of Table 7 have no scores.
    of_tasks = [path for path in sorted(folder.glob(f"*/*/*/{_RECORD}")) if path.parents[2].name != FINE_TUNED]
    for path in [*of_files, *of_tasks]:
        try:
            run = _of_record(path, folder) if path.name == _RECORD else _of_run_file(path)
            found.setdefault((run.task, run.variant, run.size, run.seed), []).append((path, run))
        except _ERRORS as error:
            problems.append(str(error))
    own: list[ReportedRun] = []
    for of_run in found.values():
        (path, first), *others = of_run
        if other := next((other for other, run in others if (run.dev, run.test) != (first.dev, first.test)), None):
            problems.append(
                f"{_title(first)} is in no table, since {path} and {other} have it with other scores: find out which "
                "is right, and move the other away"
            )
        else:
            # The folder of a run that has a file too has its config.
            own.append(replace(first, config=of_run[-1][1].config))
    of_one_kind: list[ReportedRun] = []
    for task, of_task in groupby(sorted(own, key=_order), key=lambda run: run.task):
        together = list(of_task)
        if (difference := _difference(together)) is None:
            of_one_kind += together
        else:
            problems.append(
                f"{TASKS[task].title} is in no table of runs: {difference}; move those of one kind to another folder"
            )
    of_tables, of_others = _tables_of(of_one_kind)
    problems += of_others
    for table in of_tables:
        if table.title in tables and tables[table.title].rows != table.rows:
            table = replace(table, title=f"{table.title} (of the runs that have files of their own)")
        else:
            runs = [run for run in runs if run.table != table.title]
        tables[table.title] = table
    runs = sorted([*runs, *own], key=_order)
    if not tables and not runs:
        seen = f": {problems[0]}" if problems else ""
        raise ValueError(f"'{folder}' must have results (table*.json, runs/, or folders of runs), but has none{seen}")
    return Sources([tables[title] for title in sorted(tables)], runs, problems)


def _name(run_file: Path, files: Path) -> str:
    return run_file.relative_to(files).with_suffix("").as_posix()


def _order(run: ReportedRun) -> tuple[Any, ...]:
    return list(TASKS).index(run.task), run.table or "", run.variant, run.size or 0, run.seed or 0


def _of_result_file(path: Path) -> tuple[Table, list[ReportedRun]]:
    if (exhibit := exhibit_without_runs(path)) is not None:
        return TABLES_WITHOUT_RUNS[exhibit](path), []
    results = Results.from_file(path)
    table = layout(results)
    runs = [
        ReportedRun(
            task=row["task"],
            variant=row["variant"],
            seed=row.get("seed"),
            table=table.title,
            dev=row["dev"] if "dev" in row else _mean(row, "dev"),
            test=row["test"] if "test" in row else _mean(row, "test"),
            facts=_facts(
                {
                    "result file": path.name,
                    "commit": row.get("commit"),
                    "command": _command(results, row["task"]),
                    **_settings(results.about.get(row["task"], {})),
                    "versions": "; ".join(results.versions),
                }
            ),
        )
        for row in [*results.runs, *_merged(results.summaries)]
    ]
    return table, runs


def _merged(summaries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for the two sets of a task and variant."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in summaries:
        rows.setdefault((row["task"], row["variant"]), {**row, "means": {}})["means"][row["split"]] = row
    return list(rows.values())


def _mean(row: Mapping[str, Any], split: str) -> str | None:
    summary = row["means"].get(split)
    if summary is None:
        return None
    sd = "" if summary["sd"] is None else f" ± {summary['sd']:.2f}"
    return f"{summary['mean']:.2f}{sd} ({summary['n']} seeds)"


def _command(results: Results, task: str) -> str:
    """As the settings say; where the data and the results are is not known."""
    about = results.about.get(task, {})
    seeds = [row["seed"] for row in results.runs if row["task"] == task]
    seeds += [row["n"] for row in results.summaries if row["task"] == task]
    command = [
        "allennlp",
        "elmo-tables",
        "--table",
        results.table.split()[-1],
        "--tasks",
        task,
        "--seeds",
        str(max(seeds)),
    ]
    for name in ("arguments", "overrides"):
        if about.get(name):
            command += [f"--{name}", json.dumps(about[name])]
    return shlex.join(command)


def _settings(about: Mapping[str, Any]) -> dict[str, Any]:
    # Runs are compared by these texts: the order in which keys were given must not count.
    return {
        "data": about.get("data"),
        "biLM": about.get("bilm"),
        _ARGUMENTS: json.dumps(about["arguments"], sort_keys=True) if about.get("arguments") else None,
        _OVERRIDES: json.dumps(about["overrides"], sort_keys=True) if about.get("overrides") else None,
    }


def _facts(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in given.items() if value not in (None, "", [], {})}


def _of_run_file(path: Path) -> ReportedRun:
    """A run that another machine may have trained: the file says all of it."""
    file = RunFile.read(path)
    if file.run is None:
        raise ValueError(f"{path} has no scores, since the run has failed: {file.reason}")
    content, inputs = file.content, file.digests.get("inputs", {})
    about = content.get("about", {})
    return _reported(
        replace(file.run, about=about),
        {
            "run file": "/".join(path.parts[-4:]),
            "commits": ", ".join(map(str, content["commits"])),
            **_settings(about),
            _CONFIG: file.digests.get("config"),
            _COMPUTATION: file.digests.get("computation"),
            **{f"digest of {name}": digest for name, digest in inputs.items()},
            "versions": _versions(content["versions"]),
            "machines": ", ".join(map(str, content["machines"])),
            "seconds": content["seconds"],
            "finished": content.get("finished"),
        },
        training_size=content["training_size"],
    )


def _of_record(path: Path, folder: Path) -> ReportedRun:
    """A run in its own folder."""
    record = read_record(path.parent) or {}
    try:
        identity, about = record["identity"], record["about"]
        part = path.parent.parent.name.partition("-of-")[2]
        named = {key: identity[key] for key in ("task", "variant", "seed")}
        size = int(part) if part else None
        run = Run(**named, size=size, results=folder, config={}, identity=identity, about=about)
        if run.folder != path.parent or run.task not in TASKS:
            raise ValueError(f"it is {run.name}, which has another folder")
        if record["finished"] is None and not is_whole(run.serialization_dir):
            raise ValueError("it is not finished")
        # Those who share runs may omit the archives, which are large.
        finished = FinishedRun.of(run, with_layers=(run.serialization_dir / "model.tar.gz").is_file())
        return _reported(
            finished,
            {
                "folder": run.name,
                "command": f"allennlp train {run.name}/config.json -s {run.name}/run",
                **_settings(about),
                _RUN: record["digest"],
                _CONFIG: json_sha256(identity["config"])[:16],
                **{f"digest of {name}": digest for name, digest in identity["inputs"].items()},
                "versions": _versions(record["versions"]),
                "finished": record["finished"],
            },
            config=json.dumps(identity["config"], indent=1, ensure_ascii=False),
        )
    except (KeyError, TypeError, AttributeError, *_ERRORS) as error:
        raise ValueError(f"{path.parent} must be a finished run, but: {error}") from None


def _reported(run: FinishedRun, facts: Mapping[str, Any], **others: Any) -> ReportedRun:
    named = {key: getattr(run, key) for key in ("task", "variant", "seed", "size", "dev", "test")}
    return ReportedRun(**named, facts=_facts(facts), finished=run, **others)


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _difference(runs: Iterable[ReportedRun]) -> str | None:
    """Why runs of a task must not be averaged or compared: their data, settings or code differ."""
    known: dict[tuple[Any, ...], ReportedRun] = {}
    for run in runs:
        digests = [name for name in run.facts if name.startswith(_DIGEST) and name != _RUN]
        for fact in [*digests, _ARGUMENTS, _OVERRIDES]:
            # A biLM that not all of them have is named in the fact.
            only_of: dict[str, tuple[Any, ...]] = {
                _CONFIG: (run.variant, run.size),
                _COMPUTATION: (run.variant == Variant.baseline().name,),
            }
            other = known.setdefault((fact, *only_of.get(fact, ())), run)
            found, expected = (each.facts.get(fact, "none") for each in (run, other))
            if found != expected:
                return f"{_title(other)} and {_title(run)} must have the same {fact}, but have {expected} and {found}"
    return None


def _title(run: ReportedRun) -> str:
    return f"{run.task}/{run.variant}/{run.seed}" + ("" if run.size is None else f" of {run.size}")


def _tables_of(runs: Iterable[ReportedRun]) -> tuple[list[Table], list[str]]:
    """Those tables of which some runs on the whole training set are there, and why others cannot be made."""
    tables, problems = [], []
    whole = [run.finished for run in runs if run.finished is not None and run.size is None]
    for exhibit in _TABLES:
        if chosen := [run for run in whole if _is_in(exhibit, run)]:
            try:
                tables.append(layout(Results.of_runs(exhibit, chosen)))
            except ValueError as error:
                problems.append(f"{exhibit.value} cannot be made: {error}")
    return tables, problems


def _is_in(exhibit: Exhibit, run: FinishedRun) -> bool:
    if run.task not in tasks_of(exhibit):
        return False
    task = TASKS[run.task]
    if exhibit is Exhibit.TABLE_1 and name_of_other(task, run.variant) is not None:
        return True
    return run.variant in {variant.name for variant in variants_of(exhibit, task)}
