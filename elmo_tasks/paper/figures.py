"""Figures 1 and 2: their values and plots."""

import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pandas.api.typing import SeriesGroupBy

from elmo_tasks.paper.numbers import TASKS, variants_of
from elmo_tasks.paper.train import best_epoch

__all__ = [
    "draw",
    "draw_curves",
    "draw_mixes",
    "draw_sizes",
    "epoch_values",
    "mix_table",
    "size_values",
]

_MODELS = ("baseline", "ELMo")
_STYLES: dict[str, dict[str, Any]] = {
    "baseline": {"color": "black", "linestyle": "-"},
    "ELMo": {"color": "tab:red", "linestyle": "--"},
}
_MARKERS = {"baseline": "o", "ELMo": "s"}


def size_values(runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 1: the score on the dev set and the number of training examples of each run."""
    values = _compared(runs)
    values = values.assign(score=values["dev"], training_size=values["training_size"].astype(int))
    values = values.rename(columns={"training_size": "training examples"})
    return values[["task", "training examples", "model", "seed", "score"]]


def epoch_values(runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 1: the score on the dev set after each epoch of each run on its whole training set."""
    values = _compared(runs)
    values = values[values["size"].isna()].explode("epochs")
    values["score"] = values["epochs"].astype(float)
    values["epoch"] = values.groupby(["task", "variant", "seed"]).cumcount() + 1
    return values[["task", "epoch", "model", "seed", "score"]]


def _compared(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of Table 1's baseline and ELMo."""
    variants = {name: variants_of("table 1", name) for name in set(runs["task"])}
    is_compared = [run.variant in variants[run.task] for run in runs.itertuples()]
    chosen = runs[is_compared]
    is_baseline = chosen["variant"] == "baseline"
    return chosen.assign(model=chosen["variant"].where(is_baseline, "ELMo"))


def mix_table(runs: pd.DataFrame) -> pd.DataFrame:
    """
    Figure 2: the learned weights of the layers, averaged over seeds; one row per task and place.
    """
    rows = []
    for run in runs[runs["size"].isna()].itertuples():
        if run.variant not in variants_of("figure 2", run.task):
            continue
        for mix in run.mix:
            row = {"task": run.task, "place": mix["place"]}
            for layer, weight in enumerate(mix["weights"]):
                row[f"layer {layer}"] = weight
            row["γ"] = mix["gamma"]
            rows.append(row)
    groups = pd.DataFrame(rows).groupby(["task", "place"])
    means = groups.mean().assign(seeds=groups.size()).reset_index()
    order = {task: number for number, task in enumerate(TASKS)}
    return means.sort_values(
        "task", key=lambda tasks: tasks.map(order), ignore_index=True, kind="stable"
    )


def draw(exhibit: str, runs: pd.DataFrame, folder: Path) -> list[Path]:
    """Writes the plots of a figure as PNG and SVG, and its values as CSV."""
    if exhibit == "figure 2":
        return draw_mixes(runs, folder)
    return [*draw_sizes(runs, folder), *draw_curves(runs, folder)]


def draw_sizes(runs: pd.DataFrame, folder: Path) -> list[Path]:
    """Scores by the number of training examples."""
    values = size_values(runs)
    figure, panels = _panels(_tasks_of(values))
    for task, panel in panels.items():
        for model in _MODELS:
            chosen = values[(values["task"] == task) & (values["model"] == model)]
            _draw_mean(panel, model, chosen.groupby("training examples")["score"])
        panel.set(title=TASKS[task].title, xlabel="training examples", ylabel=_score_of(task))
        panel.set_xscale("log")
        panel.legend(frameon=False)
    return _save(figure, values, folder / "figure1_examples")


def _draw_mean(panel: Axes, model: str, scores: SeriesGroupBy) -> None:
    """
    A line of the mean scores, with bars of the standard deviation, which one seed does not have.
    """
    mean = scores.mean()
    marker = _MARKERS[model]
    style = _STYLES[model]
    panel.errorbar(
        mean.index,
        mean,
        scores.std(),
        label=model,
        linewidth=1,
        marker=marker,
        markersize=3,
        capsize=2,
        **style,
    )


def draw_curves(runs: pd.DataFrame, folder: Path) -> list[Path]:
    """
    Learning curves: one line per run, with a marker at the best epoch, which is tested, and a bar
    where the run ended.
    """
    values = epoch_values(runs)
    figure, panels = _panels(_tasks_of(values))
    for task, panel in panels.items():
        for model in _MODELS:
            chosen = values[(values["task"] == task) & (values["model"] == model)]
            label: str | None = model
            for _, curve in chosen.groupby("seed"):
                _draw_curve(panel, model, label, curve)
                # The legend has each model once.
                label = None
        panel.set(title=TASKS[task].title, xlabel="epoch", ylabel=_score_of(task))
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.legend(frameon=False)
    return _save(figure, values, folder / "figure1_epoch")


def _draw_curve(panel: Axes, model: str, label: str | None, curve: pd.DataFrame) -> None:
    """One run: `curve` has a row for each of its epochs."""
    style = _STYLES[model]
    color = style["color"]
    epochs = curve["epoch"].tolist()
    scores = curve["score"].tolist()
    best = best_epoch(scores)
    panel.plot(epochs, scores, linewidth=0.7, label=label, **style)
    panel.plot(best, scores[best - 1], _MARKERS[model], color=color, markersize=4)
    panel.plot(epochs[-1], scores[-1], "|", color=color, markersize=9)


def draw_mixes(runs: pd.DataFrame, folder: Path) -> list[Path]:
    """The weights of the layers, with a panel for the input and one for the output."""
    values = mix_table(runs)
    places = sorted(set(values["place"]))
    figure = Figure(figsize=(4 * len(places), 2.6), layout="constrained")
    panels = figure.subplots(1, len(places), squeeze=False)[0]
    for panel, place in zip(panels, places, strict=True):
        weights_by_task = values[values["place"] == place].set_index("task")
        # Layers in rows, tasks in columns.
        grid = weights_by_task.filter(like="layer ").T
        _draw_grid(panel, grid)
        titles = [TASKS[task].title for task in grid]
        panel.set_xticks(range(grid.shape[1]), titles, fontsize=6)
        panel.set_yticks(range(grid.shape[0]), grid.index)
        panel.set_title(f"ELMo at the {place}")
    return _save(figure, values, folder / "figure2")


def _draw_grid(panel: Axes, grid: pd.DataFrame) -> None:
    """A field for each weight, in grey and as a number."""
    panel.imshow(grid, cmap="Greys", vmin=0, vmax=1, aspect="auto", origin="lower")
    for (row, column), weight in np.ndenumerate(grid.to_numpy()):
        color = "white" if weight > 0.5 else "black"
        panel.text(column, row, f"{weight:.2f}", ha="center", va="center", color=color)


def _score_of(task: str) -> str:
    return f"{TASKS[task].score}, dev (%)"


def _tasks_of(values: pd.DataFrame) -> list[str]:
    present = set(values["task"])
    return [task for task in TASKS if task in present]


def _panels(tasks: list[str]) -> tuple[Figure, dict[str, Axes]]:
    """A figure with a panel for each task, three in a row."""
    n_columns = min(3, len(tasks))
    n_rows = math.ceil(len(tasks) / n_columns)
    figure = Figure(figsize=(3.3 * n_columns, 2.6 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).flatten()
    for unused in panels[len(tasks) :]:
        unused.set_axis_off()
    return figure, dict(zip(tasks, panels, strict=False))


def _save(figure: Figure, values: pd.DataFrame, stem: Path) -> list[Path]:
    stem.parent.mkdir(parents=True, exist_ok=True)
    svg = stem.with_suffix(".svg")
    png = stem.with_suffix(".png")
    csv = stem.with_suffix(".csv")
    # Equal values give identical files.
    with matplotlib.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(svg, metadata={"Date": None})
        figure.savefig(png, dpi=150, metadata={"Software": None})
    values.to_csv(csv, index=False)
    return [svg, png, csv]
