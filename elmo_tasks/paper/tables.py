"""The paper's tables with our scores next to its own, made from the scores of finished runs."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd
from scipy import stats

from elmo_tasks.paper import numbers as paper
from elmo_tasks.paper.intrinsic_tables import (
    neighbor_notes,
    neighbor_table,
    word_sense_notes,
    word_sense_table,
)
from elmo_tasks.paper.measures import measured
from elmo_tasks.paper.numbers import LAYERS, TASKS, variants_of
from elmo_tasks.paper.plan import Plan
from elmo_tasks.paper.run_scores import (
    NONE,
    finished_runs,
    runs_of_variant,
    scores_by_seed,
    version_mark,
    version_notes,
)
from elmo_tasks.paper.train import best_epoch

__all__ = ["TITLES", "Table", "compared", "notes", "p_value", "table", "table_of"]

TITLES = {
    "table 1": "Table 1: baseline and ELMo",
    "table 2": "Table 2: the layers, scores on the dev sets",
    "table 3": "Table 3: the places of ELMo, scores on the dev sets",
    "table 4": "Table 4: the neighbours of *play*",
    "table 5": "Table 5: word senses, F1",
    "table 6": "Table 6: parts of speech, accuracy",
}
_COLUMNS = {
    "table 1": ["baseline", "ELMo"],
    "table 2": ["baseline", "last layer only", "all layers, λ=1", "all layers, λ=0.001"],
    "table 3": ["input", "input and output", "output"],
}
_TRANSFORMER_COLUMN = "frozen transformer"
# The columns with the paper's numbers in Table 1.
_COLUMNS_OF_PAPER = ["previous", "paper: baseline", "paper: ELMo", "paper: increase (relative)"]
# The two columns that a table compares, by number.
_COMPARED = {"table 1": (0, 1), "table 2": (0, 3), "table 3": (0, 1)}


class Table(NamedTuple):
    """A table, the notes below it, and the tasks in it."""

    rows: pd.DataFrame
    notes: list[str]
    tasks: set[str]


def table_of(
    plan: Plan,
    exhibit: str,
    tasks: Collection[str] | None = None,
) -> Table | None:
    """A table of the finished runs of a plan, or `None` if none is finished."""
    if exhibit == "table 4":
        neighbors = measured(plan, exhibit)
        if neighbors is None:
            return None
        return Table(neighbor_table(neighbors), neighbor_notes(neighbors), set())
    if exhibit == "table 5":
        senses = measured(plan, exhibit)
        if senses is None:
            return None
        return Table(word_sense_table(senses), word_sense_notes(senses), set())
    runs = finished_runs(plan, exhibit, tasks)
    if runs is None:
        return None
    sizes = {name: task.get("size", NONE) for name, task in plan.tasks.items()}
    below = notes(exhibit, runs)
    if exhibit == "table 1" and plan.transformer is not None and _has_transformer(runs):
        title = plan.transformer["title"]
        column = _TRANSFORMER_COLUMN.capitalize()
        below.append(f"{column}: {title} at ELMo's places, mixed alike.")
        if "note" in plan.transformer:
            below.append(plan.transformer["note"])
    return Table(table(exhibit, runs, sizes), below, set(runs["task"]))


def table(exhibit: str, runs: pd.DataFrame, trained_on: Mapping[str, str]) -> pd.DataFrame:
    """Table 1, 2, 3 or 6. `trained_on` has the size of each task's training set."""
    runs = runs[runs["size"].isna()]
    if exhibit == "table 6":
        return _table_6(runs)
    has_transformer = exhibit == "table 1" and _has_transformer(runs)
    rows = []
    for name in paper.TABLES[exhibit]:
        task_runs = runs[runs["task"] == name]
        if task_runs.empty:
            continue
        variants = dict(zip(_COLUMNS[exhibit], variants_of(exhibit, name), strict=True))
        if has_transformer:
            variants[_TRANSFORMER_COLUMN] = TASKS[name].transformer
        rows.append(_row(exhibit, name, task_runs, variants, trained_on.get(name, NONE)))
        printed = _printed_row(exhibit, name)
        if printed is not None:
            rows.append(printed)
    return pd.DataFrame(rows).fillna("")


def compared(exhibit: str, name: str, runs: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """The scores, by seed, of the two columns that a row of Table 1, 2 or 3 compares."""
    variants = list(variants_of(exhibit, name))
    split = _split(exhibit, name)
    left, right = _COMPARED[exhibit]
    left_scores = scores_by_seed(runs, name, variants[left], split)
    right_scores = scores_by_seed(runs, name, variants[right], split)
    return left_scores, right_scores


def _split(exhibit: str, name: str) -> str:
    return TASKS[name].split if exhibit == "table 1" else "dev"


def _row(
    exhibit: str,
    name: str,
    runs: pd.DataFrame,
    variants: Mapping[str, str],
    size: str,
) -> dict[str, str]:
    """The row of a task. `variants` has that of each column."""
    task = TASKS[name]
    split = _split(exhibit, name)
    left, right = compared(exhibit, name, runs)
    row = {"task": task.title, "measure": f"{task.score}, {split}", "trained on": size}
    for column, variant in variants.items():
        row[column] = _cell(runs, name, variant, split)
    row["increase (relative)"] = _increase(left, right)
    row["epochs (best)"] = _epochs(runs, variants.values())
    row["p"] = _p(left, right)
    if exhibit == "table 1":
        row["p, paired"] = _paired_p(left, right)
        row["paper: trained on"] = task.trained_on
        row |= dict(zip(_COLUMNS_OF_PAPER, paper.TABLE_1[name], strict=True))
    return row


def _printed_row(exhibit: str, name: str) -> dict[str, str] | None:
    """The paper's row of a task in Table 2 or 3, which is below ours."""
    printed: dict[str, tuple[str, ...]] = {}
    if exhibit == "table 2":
        printed |= paper.TABLE_2
    if exhibit == "table 3":
        printed |= paper.TABLE_3
    if name not in printed:
        return None
    task = TASKS[name]
    scores = dict(zip(_COLUMNS[exhibit], printed[name], strict=True))
    return {
        "task": f"{task.title}, paper",
        "measure": f"{task.score}, dev",
        "trained on": task.trained_on,
        **scores,
    }


def _has_transformer(runs: pd.DataFrame) -> bool:
    return any(TASKS[run.task].transformer == run.variant for run in runs.itertuples())


def _epochs(runs: pd.DataFrame, variants: Iterable[str]) -> str:
    """The mean numbers of epochs until the end and until the best one, for each column."""
    cells = []
    for variant in variants:
        epochs = runs[runs["variant"] == variant]["epochs"]
        if epochs.empty:
            cells.append(NONE)
            continue
        mean_last = epochs.map(len).mean()
        mean_best = epochs.map(best_epoch).mean()
        cells.append(f"{mean_last:.0f} ({mean_best:.0f})")
    return " / ".join(cells)


def _table_6(runs: pd.DataFrame) -> pd.DataFrame:
    ours = dict(zip(LAYERS, variants_of("table 6", "pos"), strict=True))
    rows = []
    for model in dict.fromkeys([*ours, *paper.TABLE_6]):
        row: dict[str, Any] = {"model": model}
        for split in ("dev", "test"):
            row[split] = _cell(runs, "pos", ours.get(model), split)
        row["paper, Wall Street Journal"] = paper.TABLE_6.get(model, NONE)
        rows.append(row)
    return pd.DataFrame(rows)


def notes(exhibit: str, runs: pd.DataFrame) -> list[str]:
    """Explains the cells of Table 1, 2, 3 or 6, and names the source of the paper's numbers."""
    cells = "Percent, mean ± standard deviation over seeds (their number)"
    explained = []
    if exhibit == "table 6":
        layer_1 = scores_by_seed(runs, "pos", "layer-1", "test")
        layer_2 = scores_by_seed(runs, "pos", "layer-2", "test")
        increase = f"{_increase(layer_1, layer_2)}, p {_p(layer_1, layer_2)}"
        comparison = f"from the first layer to the second, on test: {increase}"
    else:
        left, right = _COMPARED[exhibit]
        columns = _COLUMNS[exhibit]
        relative = "relative to the errors that are left"
        comparison = f"increase from “{columns[left]}” to “{columns[right]}”, {relative}"
        explained.append(
            "Epochs (best): how many epochs the runs had, and which one was the best on the "
            "dev set and is scored: means over seeds, column by column."
        )
    if exhibit == "table 2":
        explained.append(
            "Last layer only: the biLM's top layer without a mix, at ELMo's places in the task. "
            "That is not TagLM (Peters et al. 2017), which adds the top layer to the output of the "
            "first of two LSTM layers; no run does that."
        )
    tests = "p: Welch's t-test"
    if exhibit == "table 1":
        tests += ", paired: over the same seeds"
    return [
        f"{cells}; {comparison}; {tests}, two-sided.",
        *explained,
        *version_notes(runs["version"]),
        paper.source_of(exhibit),
    ]


def _cell(runs: pd.DataFrame, task: str, variant: str | None, split: str) -> str:
    """The mean of the scores, with a mark if a different version computed any of them."""
    scores = scores_by_seed(runs, task, variant, split)
    if scores.empty:
        return NONE
    mark = version_mark(runs_of_variant(runs, task, variant)["version"])
    if len(scores) == 1:
        return f"{scores.mean():.1f} (1 seed){mark}"
    return f"{scores.mean():.1f} ± {scores.std():.1f} ({len(scores)}){mark}"


def _increase(left: pd.Series, right: pd.Series) -> str:
    if left.empty or right.empty:
        return NONE
    increase = right.mean() - left.mean()
    errors = 100 - left.mean()
    if errors <= 0:
        return f"{increase:+.1f}"
    return f"{increase:+.1f} ({100 * increase / errors:+.1f}%)"


def p_value(left: pd.Series, right: pd.Series) -> float:
    """The p-value of Welch's t-test, two-sided."""
    return float(stats.ttest_ind(left, right, equal_var=False).pvalue)


def _p(left: pd.Series, right: pd.Series) -> str:
    n = min(len(left), len(right))
    deviation = max(left.std(), right.std())
    return _p_text(n, deviation, lambda: p_value(left, right))


def _paired_p(left: pd.Series, right: pd.Series) -> str:
    differences = (right - left).dropna()

    def test() -> float:
        return float(stats.ttest_1samp(differences, 0).pvalue)

    return _p_text(len(differences), differences.std(), test)


def _p_text(n: int, deviation: float, test: Callable[[], float]) -> str:
    if n == 0:
        return NONE
    if n == 1:
        return "n too small"
    # Equal scores may differ by rounding.
    if deviation < 1e-9:
        return "no variance"
    p = test()
    text = "< 0.001" if p < 0.001 else f"{p:.3f}"
    if n == 2:
        # A variance is estimated from only one difference, so it may be far off.
        text += " (n too small to trust)"
    return text
