"""Figures 1 and 2: their values and plots."""

from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from elmo_tasks.paper.numbers import TASKS, variants_of
from elmo_tasks.paper.train import best_epoch

__all__ = ["draw", "draw_curves", "draw_mixes", "draw_sizes", "epoch_values", "mix_table"]
__all__ += ["size_values"]

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
    return chosen.assign(model=chosen["variant"].where(chosen["variant"] == "baseline", "ELMo"))


def mix_table(runs: pd.DataFrame) -> pd.DataFrame:
    """
    Figure 2: the learned weights of the layers, averaged over seeds; one row per task and place.
    """
    rows = []
    for run in runs[runs["size"].isna()].itertuples():
        if run.variant not in variants_of("figure 2", run.task):
            continue
        for mix in run.mix:
            weights = {f"layer {layer}": weight for layer, weight in enumerate(mix["weights"])}
            rows.append({"task": run.task, "place": mix["place"], **weights, "γ": mix["gamma"]})
    groups = pd.DataFrame(rows).groupby(["task", "place"])
    means = groups.mean().assign(seeds=groups.size()).reset_index()
    order = {task: number for number, task in enumerate(TASKS)}
    means["order"] = means["task"].map(order)
    means = means.sort_values("order", ignore_index=True, kind="stable")
    return means.drop(columns="order")


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
            scores = chosen.groupby("training examples")["score"]
            mean = scores.mean()
            deviation = scores.std().fillna(0)
            style = {"marker": _MARKERS[model], "markersize": 3, **_STYLES[model]}
            panel.plot(mean.index, mean, label=model, linewidth=1, **style)
            lower, upper = mean - deviation, mean + deviation
            color = _STYLES[model]["color"]
            panel.fill_between(mean.index, lower, upper, color=color, alpha=0.15, linewidth=0)
        panel.set(title=_title(runs, task), xlabel="training examples", ylabel=_score_of(task))
        panel.set_xscale("log")
        panel.legend(frameon=False)
    return _save(figure, values, folder / "figure1_examples")


def draw_curves(runs: pd.DataFrame, folder: Path) -> list[Path]:
    """
    Learning curves: one line per run, with a marker at the best epoch, which is tested, and a bar
    where the run ended.
    """
    values = epoch_values(runs)
    figure, panels = _panels(_tasks_of(values))
    for task, panel in panels.items():
        for model in _MODELS:
            style = _STYLES[model]
            chosen = values[(values["task"] == task) & (values["model"] == model)]
            for number, (_, curve) in enumerate(chosen.groupby("seed")):
                epochs = curve["epoch"].tolist()
                scores = curve["score"].tolist()
                best = best_epoch(scores)
                label = model if number == 0 else None
                panel.plot(epochs, scores, linewidth=0.7, label=label, **style)
                color = style["color"]
                panel.plot(best, scores[best - 1], _MARKERS[model], color=color, markersize=4)
                panel.plot(epochs[-1], scores[-1], "|", color=color, markersize=9)
        panel.set(title=_title(runs, task), xlabel="epoch", ylabel=_score_of(task))
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.legend(frameon=False)
    return _save(figure, values, folder / "figure1_epoch")


def draw_mixes(runs: pd.DataFrame, folder: Path) -> list[Path]:
    """The weights of the layers, with a panel for the input and one for the output."""
    values = mix_table(runs)
    places = sorted(set(values["place"]))
    figure = Figure(figsize=(4 * len(places), 2.6), layout="constrained")
    for panel, place in zip(figure.subplots(1, len(places), squeeze=False)[0], places, strict=True):
        grid = values[values["place"] == place].set_index("task").filter(like="layer ").T
        panel.imshow(grid, cmap="Greys", vmin=0, vmax=1, aspect="auto", origin="lower")
        for row, weights in enumerate(grid.to_numpy()):
            for column, weight in enumerate(weights):
                color = "white" if weight > 0.5 else "black"
                text = f"{weight:.2f}"
                panel.text(column, row, text, ha="center", va="center", color=color)
        titles = [_title(runs, task, "\nstopped\nafter") for task in grid]
        panel.set_xticks(range(grid.shape[1]), titles, fontsize=6)
        panel.set_yticks(range(grid.shape[0]), grid.index)
        panel.set_title(f"ELMo at the {place}")
    return _save(figure, values, folder / "figure2")


def _title(runs: pd.DataFrame, task: str, stopped_after: str = ", stopped after") -> str:
    """The name of a task, and whether its runs were stopped early."""
    title = TASKS[task].title
    of_task = runs[runs["task"] == task]
    if not of_task["stopped"].any():
        return title
    return f"{title}{stopped_after} {max(map(len, of_task['epochs']))}"


def _score_of(task: str) -> str:
    return f"{TASKS[task].score}, dev (%)"


def _tasks_of(values: pd.DataFrame) -> list[str]:
    present = set(values["task"])
    return [task for task in TASKS if task in present]


def _panels(tasks: list[str]) -> tuple[Figure, dict[str, Axes]]:
    """A figure with a panel for each task, three in a row."""
    n_columns = min(3, len(tasks))
    n_rows = -(-len(tasks) // n_columns)
    figure = Figure(figsize=(3.3 * n_columns, 2.6 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).flatten()
    for unused in panels[len(tasks) :]:
        unused.set_axis_off()
    return figure, dict(zip(tasks, panels, strict=False))


def _save(figure: Figure, values: pd.DataFrame, stem: Path) -> list[Path]:
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(ending) for ending in (".svg", ".png", ".csv")]
    # Equal values give identical files.
    with matplotlib.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=150, metadata={"Software": None})
    values.to_csv(paths[2], index=False)
    return paths
