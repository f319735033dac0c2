"""Result files: the scores of runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.sentence_notes import sentence_notes
from elmo_tasks.replication.report.summary import Summary

__all__ = ["Results", "Split"]

Split = Literal["dev", "test"]

_FORMAT = 1
# The keys of each score in a file; `dev` and `test` are in percent, `test` may be null.
_KEYS_OF_RUN = {"task", "variant", "seed", "metric", "dev", "test"}
_KEYS_OF_SUMMARY = {"task", "variant", "metric", "split", "mean", "sd", "n"}


@dataclass
class Results:
    """
    The scores that a table is made from. In a file it is an object with the keys below, `"format": 1`, and, for other
    programs, `"computed"`: the cells of the table, which are not read back.

    # Parameters

    table
        The table, or its name.
    runs
        A run each: `task`, `variant`, `seed`, `metric`, `dev` and `test` in percent (`test` may be `None`).
    summaries
        Summaries of runs whose single scores are not known: `task`, `variant`, `metric`, `split`, `mean`, `sd` (divided
        by n - 1; `None` for one seed) and `n`, and further keys, as `commit` and `settings`.
    about
        By task: `data`, `bilm`, and `arguments` and `overrides` of its configs.
    versions
        The packages that the runs were made with.
    notes
        Further sentences for the caption, that say how to read the scores.
    made
        Sentences on how the runs were made: commands, commits, machines.

    # Raises

    `ValueError`
        If there is no such table, a score lacks a key, or there are two of the same.
    """

    table: Exhibit
    runs: list[dict[str, Any]]
    summaries: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.table = Exhibit(self.table)
        except ValueError:
            raise ValueError(
                f"results must be those of {', '.join(Exhibit)}, but are those of {self.table!r}"
            ) from None
        for rows, keys in ((self.runs, _KEYS_OF_RUN), (self.summaries, _KEYS_OF_SUMMARY)):
            for row in rows:
                missing = sorted(keys - set(row))
                if missing:
                    raise ValueError(f"a score must have {', '.join(sorted(keys))}, but one has no {missing[0]}: {row}")
                _check_numbers(row)
                if row["task"] not in TASKS or row["metric"] != TASKS[row["task"]].metric:
                    raise ValueError(
                        f"a score must be that of a task and its metric, but is that of {row['task']}: {row}"
                    )
        seen = [(run["task"], run["variant"], run["seed"]) for run in self.runs]
        seen += [(row["task"], row["variant"], row["split"]) for row in self.summaries]
        both = {(run["task"], run["variant"]) for run in self.runs} & {
            (row["task"], row["variant"]) for row in self.summaries
        }
        twice = sorted(map(str, {key for key in seen if seen.count(key) > 1} | both))
        if twice:
            raise ValueError(f"scores must be there once, but twice there is {twice[0]}")

    @classmethod
    def of_runs(cls, table: Exhibit, runs: Iterable[FinishedRun]) -> "Results":
        """Of finished runs."""
        runs = list(runs)
        scores: list[dict[str, Any]] = []
        about: dict[str, dict[str, Any]] = {}
        versions: set[str] = set()
        for run in runs:
            versions.add(", ".join(f"{name} {version}" for name, version in run.versions.items()))
            # The biLM of the runs that have one.
            about[run.task] = {**about.get(run.task, {}), **{k: v for k, v in run.about.items() if v is not None}}
            scores.append(
                {
                    "task": run.task,
                    "variant": run.variant,
                    "seed": run.seed,
                    "metric": TASKS[run.task].metric,
                    "dev": run.dev,
                    "test": run.test,
                    **({"commit": ", ".join(run.commits)} if run.commits else {}),
                }
            )
        notes = sentence_notes(runs) if table == Exhibit.TABLE_1 else []
        return cls(table, scores, about=about, versions=sorted(versions), notes=notes, made=_made(runs))

    @classmethod
    def from_file(cls, path: Path) -> "Results":
        """
        # Raises

        `ValueError`
            If it is not such a file.
        """
        try:
            content = read_json(path)
            if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
                raise ValueError(f'the file must have "format": {_FORMAT}')
            return cls(**{key: value for key, value in content.items() if key not in ("format", "computed")})
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{path} must be a result file, as `allennlp elmo-tables` writes it, but: {error}"
            ) from None

    def to_json(self, computed: Mapping[str, Any]) -> str:
        """As a file has it."""
        return json.dumps({"format": _FORMAT, **asdict(self), "computed": computed}, indent=1, ensure_ascii=False)

    def tasks(self) -> list[str]:
        """Those that have scores, in the paper's order."""
        found = {row["task"] for row in (*self.runs, *self.summaries)}
        return [task for task in TASKS if task in found]

    def summary(self, task: str, variant: str, split: Split) -> Summary | None:
        """Of all seeds of a variant that have a score; `None` if no seed has one."""
        chosen = [row for row in self.runs if (row["task"], row["variant"]) == (task, variant)]
        scores = [row[split] for row in chosen if row[split] is not None]
        if scores:
            return Summary.of(scores)
        for row in self.summaries:
            if (row["task"], row["variant"], row["split"]) == (task, variant, split):
                return Summary(row["mean"], row["sd"], row["n"])
        return None

    def pairs(self, task: str, first: str, second: str, split: Split) -> list[tuple[float, float]]:
        """The scores of two variants, of each seed that both have one of, seed by seed."""
        by_seed: list[dict[int, float]] = [
            {
                row["seed"]: row[split]
                for row in self.runs
                if (row["task"], row["variant"]) == (task, variant) and row[split] is not None
            }
            for variant in (first, second)
        ]
        return [(by_seed[0][seed], by_seed[1][seed]) for seed in sorted({*by_seed[0]} & {*by_seed[1]})]


def _made(runs: Sequence[FinishedRun]) -> list[str]:
    seconds = [run.seconds for run in runs if run.seconds is not None]
    if not seconds:
        return []
    machines = sorted({machine for run in runs for machine in run.machines})
    return [f"{len(seconds)} trainings of {sum(seconds) / 3600:.1f} hours together, on {'; '.join(machines)}."]


def _check_numbers(row: Mapping[str, Any]) -> None:
    """Percents are numbers from 0 to 100, or, where they may be missing, `None`."""
    for key, may_be_none in (("dev", False), ("test", True), ("mean", False), ("sd", True)):
        value = row.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100
        if key in row and not is_number and not (value is None and may_be_none):
            raise ValueError(f"'{key}' must be a number from 0 to 100, but is {value!r:.100}: {row}")
    for key in ("seed", "n"):
        if key in row and (type(row[key]) is not int or row[key] < 1):
            raise ValueError(f"'{key}' must be a number of at least 1, but is {row[key]!r:.100}: {row}")
