"""
The scores of finished runs as tables of pandas, with one row per run.

A run of a different version of this package is not mixed in silently: its score, and a mean with
it, has a mark.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import pandas as pd

from elmo_tasks.paper.numbers import TRANSFORMER
from elmo_tasks.paper.plan import Plan
from elmo_tasks.paper.train import sort_out
from elmo_tasks.version import __version__

__all__ = [
    "NONE",
    "finished_runs",
    "runs_of",
    "runs_of_variant",
    "scores_by_seed",
    "side_by_side",
    "version_mark",
    "version_notes",
    "version_of",
]

NONE = "–"
# Marks scores that a different version of this package computed.
_MARK = "§"


def finished_runs(
    plan: Plan,
    exhibit: str,
    tasks: Collection[str] | None = None,
) -> pd.DataFrame | None:
    """The finished runs of a table or figure, or `None` if none is finished."""
    exhibits = [exhibit]
    if exhibit == "table 1":
        exhibits.append(TRANSFORMER)
    scores = sort_out(plan.runs(exhibits, tasks)).scores
    if not scores:
        return None
    return runs_of(scores)


def runs_of(scores: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """A row for each run, with the `version` of this package that computed it."""
    rows = [{**run, "version": version_of(run)} for run in scores]
    return pd.DataFrame(rows).sort_values(["task", "variant", "seed"], ignore_index=True)


def version_of(scores: dict[str, Any]) -> str:
    return str(scores.get("versions", {}).get("elmo_tasks", "not recorded"))


def scores_by_seed(runs: pd.DataFrame, task: str, variant: str | None, split: str) -> pd.Series:
    """The scores on the whole training set, indexed by seed."""
    chosen = runs_of_variant(runs, task, variant)
    return chosen.set_index("seed")[split].astype(float).dropna()


def runs_of_variant(runs: pd.DataFrame, task: str, variant: str | None) -> pd.DataFrame:
    return runs[(runs["task"] == task) & (runs["variant"] == variant)]


def side_by_side(runs: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """
    The dev and test scores, earlier and new, in percent, and the versions, of the runs that both
    have.
    """
    key = ["task", "variant", "seed"]
    columns = [*key, "dev", "test", "version"]
    old_runs = earlier[earlier["size"].isna()][columns]
    new_runs = runs[runs["size"].isna()][columns]
    both = old_runs.merge(new_runs, on=key, suffixes=(", earlier", ", new"))
    for split in ("dev", "test"):
        both[f"{split}, difference"] = both[f"{split}, new"] - both[f"{split}, earlier"]
    return both.round(4).fillna(NONE)


def version_notes(versions: Iterable[str]) -> list[str]:
    """One line that explains the mark, if any of the runs has it."""
    other_versions = Counter(version for version in versions if version != __version__)
    if not other_versions:
        return []
    counts = sorted(other_versions.items())
    listed = ", ".join(f"{version} ({n_runs})" for version, n_runs in counts)
    different = f"with runs of a different version of elmo_tasks than {__version__}"
    return [f"{_MARK}: {different}: {listed}."]


def version_mark(versions: Iterable[str]) -> str:
    is_different = any(version != __version__ for version in versions)
    return _MARK if is_different else ""
