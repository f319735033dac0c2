"""What the runs say about the claims of the paper."""

import math
from statistics import fmean
from typing import NamedTuple

import pandas as pd

from elmo_tasks.paper.numbers import TABLES, TASKS, variants_of
from elmo_tasks.paper.run_scores import NONE, scores_by_seed
from elmo_tasks.paper.tables import p_value
from elmo_tasks.paper.train import best_epoch

__all__ = ["findings"]


class _Claim(NamedTuple):
    """
    A claim of the paper: for some tasks, one column of a table is better than another. Columns are
    given by their numbers.
    """

    text: str
    exhibit: str
    better: int
    worse: int
    tasks: tuple[str, ...]


_ABLATED = TABLES["table 2"]
_CLAIMS = [
    _Claim("ELMo beats the baseline (Table 1)", "table 1", 1, 0, TABLES["table 1"]),
    _Claim("the last layer alone beats the baseline (Table 2)", "table 2", 1, 0, _ABLATED),
    _Claim("all layers beat the last (Table 2)", "table 2", 3, 1, _ABLATED),
    _Claim("a small λ beats a large one (Table 2)", "table 2", 3, 2, _ABLATED),
    _Claim("both places beat the input alone (Table 3; not for SRL)", "table 3", 1, 0, _ABLATED),
    _Claim("both places beat the output alone (Table 3)", "table 3", 1, 2, _ABLATED),
    _Claim("the first layer is better for parts of speech (Table 6)", "table 6", 1, 2, ("pos",)),
]
_SIGNIFICANT = "significant (p < 0.05)"
_COLUMNS = ("the paper", "yes", "no", _SIGNIFICANT)


def findings(runs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each claim, with the tasks for which it holds. `runs` has those of each exhibit."""
    rows = []
    for claim in _CLAIMS:
        rows.append(_row(claim.text, _verdicts(claim, runs[claim.exhibit])))
    faster = "ELMo reaches the baseline's best score in fewer epochs (Figure 1)"
    rows.append(_row(faster, _faster(runs["table 1"])))
    for share, name in ((0.01, "a hundredth"), (0.1, "a tenth")):
        text = f"ELMo gains more with {name} of the data (Figure 1)"
        rows.append(_row(text, _gains_more(runs["figure 1"], share)))
    return pd.DataFrame(rows, columns=_COLUMNS)


# For each task, a verdict, which is the name of a column, and the task with details.
_Verdicts = list[tuple[str, str]]


def _row(text: str, verdicts: _Verdicts) -> list[str]:
    cells = [text]
    for column in _COLUMNS[1:]:
        names = [name for verdict, name in verdicts if verdict == column]
        cells.append(", ".join(names) or NONE)
    return cells


def _verdicts(claim: _Claim, runs: pd.DataFrame) -> _Verdicts:
    verdicts = []
    for name, task_runs in _by_task(runs, claim.tasks):
        task = TASKS[name]
        split = "dev" if claim.exhibit in ("table 2", "table 3") else task.split
        variants = list(variants_of(claim.exhibit, name))
        better = scores_by_seed(task_runs, name, variants[claim.better], split)
        worse = scores_by_seed(task_runs, name, variants[claim.worse], split)
        if better.empty or worse.empty:
            continue
        difference = better.mean() - worse.mean()
        verdict = _verdict(difference, 0.0, digits=1)
        n_seeds = min(len(better), len(worse))
        verdicts.append((verdict, _with_details(task.title, f"{difference:+.1f}", n_seeds)))
        has_variance = n_seeds > 2 and better.std() + worse.std() > 0
        if has_variance and p_value(worse, better) < 0.05:
            verdicts.append((_SIGNIFICANT, task.title))
    return verdicts


def _faster(runs: pd.DataFrame) -> _Verdicts:
    """Whether the runs with ELMo pass the best score of the baseline's run before its epoch."""
    verdicts = []
    for name, task_runs in _by_task(runs, TABLES["table 1"]):
        task = TASKS[name]
        epochs = task_runs.set_index(["variant", "seed"])["epochs"]
        if not {"baseline", task.elmo} <= set(task_runs["variant"]):
            continue
        seeds = sorted(set(epochs["baseline"].index) & set(epochs[task.elmo].index))
        if not seeds:
            continue
        baseline_epochs = []
        elmo_epochs = []
        for seed in seeds:
            baseline_scores = epochs["baseline", seed]
            elmo_epoch = _first_at_least(max(baseline_scores), epochs[task.elmo, seed])
            if elmo_epoch is not None:
                baseline_epochs.append(best_epoch(baseline_scores))
                elmo_epochs.append(elmo_epoch)
        n_passed = len(elmo_epochs)
        if n_passed < len(seeds):
            verdicts.append(("no", f"{task.title} ({n_passed} of {len(seeds)} seeds)"))
            continue
        elmo_mean = fmean(elmo_epochs)
        baseline_mean = fmean(baseline_epochs)
        verdict = _verdict(baseline_mean, elmo_mean, digits=0)
        details = f"{elmo_mean:.0f} instead of {baseline_mean:.0f}"
        verdicts.append((verdict, _with_details(task.title, details, len(seeds))))
    return verdicts


def _first_at_least(score: float, epochs: list[float]) -> int | None:
    """The first epoch, counted from 1, with at least this score."""
    for number, epoch_score in enumerate(epochs, 1):
        if epoch_score >= score:
            return number
    return None


def _gains_more(runs: pd.DataFrame, share: float) -> _Verdicts:
    """Whether the gain with a share of the training set exceeds the gain with all of it."""
    verdicts = []
    for name, task_runs in _by_task(runs, TABLES["figure 1"]):
        task = TASKS[name]
        # Shape: sizes in rows, variants in columns; the whole training set is the last row.
        scores = task_runs.groupby(["training_size", "variant"])["dev"]
        means = scores.mean().unstack().sort_index()
        if len(means) < 3 or means.isna().any(axis=None):
            continue
        gains = means[task.elmo] - means["baseline"]
        part = _size_of_share(gains.index, share)
        if part is None:
            continue
        gain = gains[part]
        whole_gain = gains.iloc[-1]
        details = f"{gain:+.1f} instead of {whole_gain:+.1f}"
        verdict = _verdict(gain, whole_gain, digits=1)
        verdicts.append((verdict, _with_details(task.title, details, scores.count().min())))
    return verdicts


def _verdict(value: float, other: float, *, digits: int) -> str:
    """Whether a value is larger than the other one, as the page shows them."""
    return "yes" if round(value, digits) > round(other, digits) else "no"


def _with_details(title: str, details: str, n_seeds: int) -> str:
    """A task with the values behind its verdict, which say if they rest on one seed."""
    if n_seeds == 1:
        details += ", 1 seed"
    return f"{title} ({details})"


def _size_of_share(sizes: pd.Index, share: float) -> int | None:
    """The size that is about this share of the last one, which is the whole training set."""
    for size in sizes:
        if math.isclose(size / sizes[-1], share, rel_tol=0.1):
            return int(size)
    return None


def _by_task(runs: pd.DataFrame, tasks: tuple[str, ...]) -> list[tuple[str, pd.DataFrame]]:
    chosen = []
    for name in tasks:
        task_runs = runs[runs["task"] == name]
        if not task_runs.empty:
            chosen.append((name, task_runs))
    return chosen
