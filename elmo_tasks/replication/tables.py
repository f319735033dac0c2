"""
The paper's tables with our scores next to its own, made from the scores of finished runs.

A run of a different version of this package is not mixed in silently: its score, and a mean with it, has a mark.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd
from scipy import stats

from elmo_tasks.replication import paper
from elmo_tasks.replication.paper import LAYERS, TASKS, variants_of
from elmo_tasks.replication.plan import Plan
from elmo_tasks.replication.train import sort_out, word_senses
from elmo_tasks.version import __version__

__all__ = ["TITLES", "Table", "finished_runs", "notes", "runs_of", "side_by_side", "table", "table_of"]
__all__ += ["version_notes", "word_sense_notes", "word_sense_table"]

TITLES = {
    "table 1": "Table 1: baseline and ELMo",
    "table 2": "Table 2: the layers, scores on the dev sets",
    "table 3": "Table 3: the places of ELMo, scores on the dev sets",
    "table 5": "Table 5: word senses, F1",
    "table 6": "Table 6: parts of speech, accuracy",
}
_COLUMNS = {
    "table 1": ["baseline", "ELMo"],
    "table 2": ["baseline", "last layer only", "all layers, λ=1", "all layers, λ=0.001"],
    "table 3": ["input", "input and output", "output"],
}
# Of Table 1.
_COLUMNS_OF_PAPER = ["previous", "paper: baseline", "paper: ELMo", "paper: increase (relative)"]
# The columns that a table compares.
_COMPARED = {"table 1": (0, 1), "table 2": (0, 3), "table 3": (0, 1)}
_NONE = "–"
# Of scores by a different version of this package. Numbers of the paper have † and ‡.
_MARK = "§"


class Table(NamedTuple):
    """A table, the notes below it, and the tasks in it."""

    rows: pd.DataFrame
    notes: list[str]
    tasks: set[str]


def table_of(plan: Plan, exhibit: str, tasks: Collection[str] | None = None) -> Table | None:
    """A table of the finished runs of a plan, or `None` if none is finished."""
    if exhibit == "table 5":
        scores = word_senses(plan)
        return None if scores is None else Table(word_sense_table(scores), word_sense_notes(scores), set())
    runs = finished_runs(plan, exhibit, tasks)
    if runs is None:
        return None
    sizes = {name: task.get("size", _NONE) for name, task in plan.tasks.items()}
    return Table(table(exhibit, runs, sizes), notes(exhibit, runs), set(runs["task"]))


def finished_runs(plan: Plan, exhibit: str, tasks: Collection[str] | None = None) -> pd.DataFrame | None:
    """The finished runs of a table or figure, or `None` if none is finished."""
    scores = sort_out(plan.runs([exhibit], tasks)).scores
    return runs_of(scores) if scores else None


def runs_of(scores: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """A row for each run, with the `version` of this package that computed it."""
    rows = [{**run, "version": _version_of(run)} for run in scores]
    return pd.DataFrame(rows).sort_values(["task", "variant", "seed"], ignore_index=True)


def _version_of(scores: dict[str, Any]) -> str:
    return str(scores.get("versions", {}).get("elmo_tasks", "not recorded"))


def version_notes(versions: Iterable[str]) -> list[str]:
    """One line that explains the mark, if any of the runs has it."""
    others = Counter(version for version in versions if version != __version__)
    listed = ", ".join(f"{version} ({number})" for version, number in sorted(others.items()))
    return [f"{_MARK}: with runs of a different version of elmo_tasks than {__version__}: {listed}."] if others else []


def table(exhibit: str, runs: pd.DataFrame, trained_on: Mapping[str, str]) -> pd.DataFrame:
    """Table 1, 2, 3 or 6. `trained_on` has the size of each task's training set."""
    runs = runs[runs["size"].isna()]
    return _table_6(runs) if exhibit == "table 6" else _comparison(exhibit, runs, trained_on)


def side_by_side(runs: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """The dev and test scores, earlier and new, in percent, and the versions, of the runs that both have."""
    key = ["task", "variant", "seed"]
    whole = [rows[rows["size"].isna()][[*key, "dev", "test", "version"]] for rows in (earlier, runs)]
    both = whole[0].merge(whole[1], on=key, suffixes=(", earlier", ", new"))
    for split in ("dev", "test"):
        both[f"{split}, difference"] = both[f"{split}, new"] - both[f"{split}, earlier"]
    return both.round(4).fillna(_NONE)


def _comparison(exhibit: str, runs: pd.DataFrame, trained_on: Mapping[str, str]) -> pd.DataFrame:
    rows = []
    columns = _COLUMNS[exhibit]
    for name in (name for name in paper.TABLES[exhibit] if name in set(runs["task"])):
        task = TASKS[name]
        split = task.split if exhibit == "table 1" else "dev"
        scores = [_scores(runs, name, variant, split) for variant in variants_of(exhibit, name)]
        first, second = (scores[column] for column in _COMPARED[exhibit])
        row = {"task": task.title, "measure": f"{task.score}, {split}", "trained on": trained_on.get(name, _NONE)}
        cells = [_cell(runs, name, variant, split) for variant in variants_of(exhibit, name)]
        row |= dict(zip(columns, cells, strict=True))
        rows.append({**row, "increase (relative)": _increase(first, second), "p": _p(first, second)})
        if exhibit == "table 1":
            rows[-1] |= {"p, paired": _paired_p(first, second), "paper†: trained on": task.trained_on}
            rows[-1] |= dict(zip(_COLUMNS_OF_PAPER, paper.TABLE_1[name], strict=True))
        elif quoted := (paper.TABLE_2 if exhibit == "table 2" else paper.TABLE_3).get(name):
            row = {"task": f"{task.title}, paper", "measure": f"{task.score}, dev", "trained on": task.trained_on}
            rows.append({**row, **dict(zip(columns, quoted, strict=True))})
    return pd.DataFrame(rows).fillna("")


def _table_6(runs: pd.DataFrame) -> pd.DataFrame:
    ours = dict(zip(LAYERS, variants_of("table 6", "pos"), strict=True))
    return pd.DataFrame(
        {
            "model": model,
            **{split: _cell(runs, "pos", ours.get(model), split) for split in ("dev", "test")},
            "paper, Wall Street Journal": paper.TABLE_6.get(model, _NONE),
        }
        for model in dict.fromkeys([*ours, *paper.TABLE_6])
    )


def notes(exhibit: str, runs: pd.DataFrame) -> list[str]:
    """Explains the cells of Table 1, 2, 3 or 6, and names the sources of the paper's numbers."""
    cells = "Percent, mean ± standard deviation over seeds (their number)"
    if exhibit == "table 6":
        first, second = (_scores(runs, "pos", f"layer-{layer}", "test") for layer in (1, 2))
        compared = f"from the first layer to the second, on test: {_increase(first, second)}, p {_p(first, second)}"
    else:
        names = [_COLUMNS[exhibit][column] for column in _COMPARED[exhibit]]
        compared = f"increase from “{names[0]}” to “{names[1]}”, relative to the errors that are left"
    tests = "p: Welch's t-test" + (", paired: over the same seeds" if exhibit == "table 1" else "")
    return [
        f"{cells}; {compared}; {tests}, two-sided.",
        *version_notes(runs["version"]),
        f"The paper's numbers: {paper.SOURCES[exhibit]}.",
    ]


def word_sense_table(scores: dict[str, Any]) -> pd.DataFrame:
    """Table 5, from the output of `allennlp elmo-wsd`."""
    names = {f"layer {layer}": name for layer, name in enumerate(LAYERS)} | {"mean": "biLM, mean of the layers"}
    mark = _mark([_version_of(scores)])
    names["first sense"] = "WordNet 1st sense" if scores["wordnet"] else "most frequent sense of the training data"
    ours = {
        names.get(key, key): {
            column: f"{100 * sets[column]['f1']:.1f}{mark}" for column in ("the four", "ALL") if column in sets
        }
        for key, sets in scores["scores"].items()
    }
    models = dict.fromkeys([*ours, *paper.TABLE_5])
    rows = [{"model": model, **ours.get(model, {}), "paper, the four": paper.TABLE_5.get(model)} for model in models]
    return pd.DataFrame(rows, dtype=object).fillna(_NONE)


def word_sense_notes(scores: dict[str, Any]) -> list[str]:
    unanswered = sum(counts["unanswered"] for counts in scores["sets"].values())
    learned = f"{scores['senses']:,} senses of {scores['instances_of_training']:,} instances of {scores['training']}"
    return [
        "The four: senseval2, senseval3, semeval2013 and semeval2015 as one set; ALL: semeval2007 too.",
        f"Learned: {learned}, nearest by {scores['distance']}. First senses: {scores['first_senses']}.",
        f"Unanswered: {unanswered:,} of ALL. Without WordNet's first senses F1 is not comparable with the paper.",
        *version_notes([_version_of(scores)]),
        f"The paper's numbers: {paper.SOURCES['table 5']}.",
    ]


def _scores(runs: pd.DataFrame, task: str, variant: str | None, split: str) -> pd.Series:
    """The scores, indexed by seed."""
    return _chosen(runs, task, variant).set_index("seed")[split].astype(float).dropna()


def _chosen(runs: pd.DataFrame, task: str, variant: str | None) -> pd.DataFrame:
    return runs[(runs["task"] == task) & (runs["variant"] == variant)]


def _cell(runs: pd.DataFrame, task: str, variant: str | None, split: str) -> str:
    """The mean of the scores, with a mark if a different version computed any of them."""
    scores = _scores(runs, task, variant, split)
    if scores.empty:
        return _NONE
    several = f"± {scores.std():.1f} ({len(scores)})"
    mark = _mark(_chosen(runs, task, variant)["version"])
    return f"{scores.mean():.1f} {'(1 seed)' if len(scores) == 1 else several}{mark}"


def _mark(versions: Iterable[str]) -> str:
    return _MARK * any(version != __version__ for version in versions)


def _increase(first: pd.Series, second: pd.Series) -> str:
    if first.empty or second.empty:
        return _NONE
    increase, errors = second.mean() - first.mean(), 100 - first.mean()
    return f"{increase:+.1f}" + (f" ({100 * increase / errors:+.1f}%)" if errors > 0 else "")


def _p(first: pd.Series, second: pd.Series) -> str:
    n, deviation = min(len(first), len(second)), max(first.std(), second.std())
    return _p_text(n, deviation, lambda: stats.ttest_ind(first, second, equal_var=False))


def _paired_p(first: pd.Series, second: pd.Series) -> str:
    differences = (second - first).dropna()
    return _p_text(len(differences), differences.std(), lambda: stats.ttest_1samp(differences, 0))


def _p_text(n: int, deviation: float, test: Callable[[], Any]) -> str:
    if n < 2:
        return "n too small" if n else _NONE
    # Equal scores may differ by rounding.
    if deviation < 1e-9:
        return "no variance"
    p = test().pvalue
    # With two seeds, a variance is estimated from only one difference, so it may be far off.
    return ("< 0.001" if p < 0.001 else f"{p:.3f}") + (" (n too small to trust)" if n < 3 else "")
