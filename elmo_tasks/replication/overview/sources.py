"""The result files and runs of a folder, as a report shows them."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmo_tasks.analysis import run_scores
from elmo_tasks.files.sealed_json import json_sha256, read_json, read_sealed
from elmo_tasks.replication.plan.exhibit import TASKS_OF, Exhibit
from elmo_tasks.replication.plan.plan import variants_of
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.layer_weights import LayerWeight, layer_weights
from elmo_tasks.replication.report.layout import layout
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.report.table_5 import word_senses_table
from elmo_tasks.replication.train.record import check_scores, read_record

__all__ = ["ReportedRun", "Sources", "read_sources"]

_RECORD = "record.json"
_FORMAT_OF_RUN = 1
_TABLES = (Exhibit.TABLE_1, Exhibit.TABLE_2, Exhibit.TABLE_3, Exhibit.TABLE_6)


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
    epochs
        The score on the dev set after each epoch, in percent.
    layer_weights
        Of each place of ELMo.
    facts
        What else is known of it, by its name: commit, digests, versions and so on.
    config
        Its config, as JSON; `None` if it is not known.
    """

    task: str
    variant: str
    seed: int | None
    size: int | None = None
    table: str | None = None
    dev: float | str | None
    test: float | str | None
    epochs: tuple[float, ...] = ()
    layer_weights: tuple[LayerWeight, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    config: str | None = None


@dataclass(frozen=True)
class Sources:
    """
    # Parameters

    tables
        In the paper's order.
    runs
        All, in the order of tasks, variants, sizes and seeds.
    problems
        Sentences on files that could not be read.
    """

    tables: list[Table]
    runs: list[ReportedRun]
    problems: list[str]


def read_sources(folder: Path, result_files: Sequence[Path] | None = None) -> Sources:
    """
    # Parameters

    folder
        Result files (`table*.json`), run files (`runs/TASK/VARIANT/SEED.json`) and folders of runs, as `allennlp
        elmo-tables` makes them; whatever of these is there.
    result_files
        `None`: those of the folder.

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
    runs: dict[tuple[Any, ...], ReportedRun] = {}
    for path in sorted(folder.glob("table*.json") if result_files is None else result_files):
        try:
            table, of_table = _of_result_file(path)
            tables[table.title] = table
            runs |= {_key(run): run for run in of_table}
        except (ValueError, OSError) as error:
            problems.append(str(error))
    found: list[tuple[ReportedRun, dict[str, Any]]] = []
    for path in [*sorted((folder / "runs").rglob("*.json")), *sorted(folder.glob(f"*/*/*/{_RECORD}"))]:
        try:
            found.append(_of_record(path) if path.name == _RECORD else _of_run_file(path))
        except (ValueError, OSError) as error:
            problems.append(str(error))
    runs |= {_key(run): run for run, _ in found}
    for table in _tables_of(found):
        tables.setdefault(table.title, table)
    if not tables and not runs:
        seen = f": {problems[0]}" if problems else ""
        raise ValueError(f"'{folder}' must have results (table*.json, runs/, or folders of runs), but has none{seen}")
    return Sources([tables[title] for title in sorted(tables)], sorted(runs.values(), key=_order), problems)


def _key(run: ReportedRun) -> tuple[Any, ...]:
    return run.table, run.task, run.variant, run.size, run.seed


def _order(run: ReportedRun) -> tuple[Any, ...]:
    return list(TASKS).index(run.task), run.table or "", run.variant, run.size or 0, run.seed or 0


def _of_result_file(path: Path) -> tuple[Table, list[ReportedRun]]:
    content = read_json(path)
    if isinstance(content, dict) and content.get("table") == Exhibit.TABLE_5:
        return word_senses_table(path), []
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
    return {
        "data": about.get("data"),
        "biLM": about.get("bilm"),
        "arguments of the template": json.dumps(about["arguments"]) if about.get("arguments") else None,
        "overrides of the config": json.dumps(about["overrides"]) if about.get("overrides") else None,
    }


def _facts(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in given.items() if value not in (None, "", [], {})}


def _of_run_file(path: Path) -> tuple[ReportedRun, dict[str, Any]]:
    """A run that another machine may have trained: the file says all of it."""
    content = read_sealed(path)
    try:
        if content["format"] != _FORMAT_OF_RUN:
            raise ValueError(f'it must have "format": {_FORMAT_OF_RUN}, but has {content["format"]!r:.20}')
        if content["status"] != "finished":
            raise ValueError(f"the run has failed: {content.get('reason')}")
        weights = tuple(LayerWeight(**row) for row in content["layer_weights"])
        digests = content["digests"]
        run = ReportedRun(
            **{key: content[key] for key in ("task", "variant", "seed", "size", "dev", "test")},
            epochs=tuple(map(float, content["epochs"])),
            layer_weights=weights,
            facts=_facts(
                {
                    "run file": "/".join(path.parts[-4:]),
                    "commits": ", ".join(map(str, content["commits"])),
                    "command": "allennlp elmo-tables --plan open",
                    **_settings(content.get("about", {})),
                    "digest of the config": digests.get("config"),
                    "digest of what the code computes": digests.get("computation"),
                    **{f"digest of {name}": digest for name, digest in digests.get("inputs", {}).items()},
                    "versions": _versions(content["versions"]),
                    "machines": ", ".join(map(str, content["machines"])),
                    "seconds": content["seconds"],
                    "finished": content.get("finished"),
                }
            ),
        )
        _check(run)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} must be a finished run, as `allennlp elmo-tables` writes it, but: {error!r}"
        ) from None
    return run, content.get("about", {})


def _of_record(path: Path) -> tuple[ReportedRun, dict[str, Any]]:
    """A run in its own folder."""
    record, directory = read_record(path.parent) or {}, path.parent / "run"
    try:
        identity, task = record["identity"], record["identity"]["task"]
        if record["finished"] is None:
            raise ValueError("it is not finished")
        check_scores(path.parent)
        metric = TASKS[task].metric
        dev, test = run_scores(directory, metric)
        size, archive = path.parent.parent.name.partition("-of-")[2], directory / "model.tar.gz"
        run = ReportedRun(
            task=task,
            variant=identity["variant"],
            seed=identity["seed"],
            size=int(size) if size else None,
            dev=100 * dev,
            test=None if test is None else 100 * test,
            epochs=_epochs(directory, f"validation_{metric}"),
            # Those who share runs may omit the archives, which are large.
            layer_weights=tuple(layer_weights(archive)) if archive.is_file() else (),
            facts=_facts(
                {
                    "folder": "/".join(path.parent.parts[-3:]),
                    "command": f"allennlp train {path.parent.name}/config.json -s {path.parent.name}/run",
                    **_settings(record["about"]),
                    "digest of the run": record["digest"],
                    "digest of the config": json_sha256(identity["config"])[:16],
                    **{f"digest of {name}": digest for name, digest in identity["inputs"].items()},
                    "versions": _versions(record["versions"]),
                    "finished": record["finished"],
                }
            ),
            config=json.dumps(identity["config"], indent=1, ensure_ascii=False),
        )
        _check(run)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path.parent} must be a finished run, but: {error}") from None
    return run, record["about"]


def _epochs(directory: Path, metric: str) -> tuple[float, ...]:
    files = {int(path.stem.rpartition("_")[2]): path for path in directory.glob("metrics_epoch_*.json")}
    return tuple(100 * float(read_json(files[epoch])[metric]) for epoch in sorted(files))


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _check(run: ReportedRun) -> None:
    if run.task not in TASKS or not isinstance(run.variant, str) or type(run.seed) is not int:
        raise ValueError(f"it must be the run of a task, a variant and a seed, but is {run.task!r:.50}")
    for score in (run.dev, *(() if run.test is None else (run.test,)), *run.epochs):
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 100:
            raise ValueError(f"scores must be numbers from 0 to 100, but one is {score!r:.50}")


def _tables_of(found: Iterable[tuple[ReportedRun, dict[str, Any]]]) -> list[Table]:
    """Those tables of which some runs on the whole training set are there."""
    tables = []
    whole = [(run, about) for run, about in found if run.size is None]
    for exhibit in _TABLES:
        wanted = {(task, variant.name) for task in TASKS_OF[exhibit] for variant in variants_of(exhibit, TASKS[task])}
        rows, about, versions = [], {}, set()
        for run, settings in whole:
            if (run.task, run.variant) in wanted:
                rows.append({"metric": TASKS[run.task].metric, **_scores(run)})
                about[run.task] = {**about.get(run.task, {}), **{k: v for k, v in settings.items() if v is not None}}
                versions.add(run.facts.get("versions", ""))
        if rows:
            tables.append(layout(Results(exhibit, rows, about=about, versions=sorted(versions - {""}))))
    return tables


def _scores(run: ReportedRun) -> dict[str, Any]:
    return {key: getattr(run, key) for key in ("task", "variant", "seed", "dev", "test")}
