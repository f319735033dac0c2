"""Figures 1 and 2: their values and plots."""

from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from elmo_tasks.replication.paper import TABLES, TASKS, variants_of

__all__ = ["curve_values", "draw", "mix_table"]

_STYLES = {"baseline": ("o", "-", "black"), "ELMo": ("s", "--", "0.35")}


def curve_values(runs: pd.DataFrame, x: str) -> pd.DataFrame:
    """
    Figure 1: scores on the dev set, one row per run and `x`: the number of `training examples` (score of the
    best epoch), or each `epoch` on the whole training set.
    """
    if x == "training examples":
        found = runs.assign(x=runs["training_size"].astype(int), score=runs["dev"])
    else:
        found = runs[runs["size"].isna()].explode("epochs").assign(score=lambda rows: rows["epochs"].astype(float))
        found["x"] = found.groupby(["task", "variant", "seed"]).cumcount() + 1
    found["model"] = found["variant"].where(found["variant"] == "baseline", "ELMo")
    return found[["task", "x", "model", "seed", "score"]].rename(columns={"x": x})


def mix_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 2: the learnt weights of the layers, averaged over seeds; one row per task and place."""
    rows = [
        {"task": run.task, "place": mix["place"], **dict(enumerate(mix["weights"])), "γ": mix["gamma"]}
        for run in runs[runs["size"].isna()].itertuples()
        for mix in run.mix
        if run.variant in variants_of("figure 2", run.task)
    ]
    groups = pd.DataFrame(rows).groupby(["task", "place"])
    means = groups.mean().assign(seeds=groups.size()).reset_index()
    means = means.rename(columns=lambda name: f"layer {name}" if isinstance(name, int) else name)
    return means.sort_values("task", key=lambda tasks: tasks.map(list(TASKS).index), ignore_index=True, kind="stable")


def draw(exhibit: str, runs: pd.DataFrame, folder: Path) -> list[Path]:
    """Writes the plots of a figure as PNG and SVG, and its values as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    if exhibit == "figure 2":
        return _save(_mixes(mix_table(runs)), mix_table(runs), folder / "figure2")
    files = []
    for x in ("training examples", "epoch"):
        values = curve_values(runs, x)
        files += _save(_curves(values, x), values, folder / f"figure1_{x.split()[-1]}")
    return files


def _curves(values: pd.DataFrame, x: str) -> Figure:
    tasks = [task for task in TABLES["figure 1"] if task in set(values["task"])]
    figure, panels = _panels(len(tasks))
    for panel, task in zip(panels, tasks, strict=True):
        for model, (marker, line, color) in _STYLES.items():
            chosen = values[(values["task"] == task) & (values["model"] == model)].groupby(x)["score"]
            mean, deviation = chosen.mean(), chosen.std().fillna(0)
            style = {"marker": marker, "linestyle": line, "color": color, "markersize": 3, "linewidth": 1}
            panel.plot(mean.index, mean, label=model, **style)
            panel.fill_between(mean.index, mean - deviation, mean + deviation, color=color, alpha=0.15, linewidth=0)
        panel.set(title=TASKS[task].title, xlabel=x, ylabel=f"{TASKS[task].score}, dev (%)")
        if x == "epoch":
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        else:
            panel.set_xscale("log")
        panel.legend(frameon=False)
    return figure


def _mixes(values: pd.DataFrame) -> Figure:
    places = sorted(set(values["place"]))
    figure, panels = _panels(len(places))
    for panel, place in zip(panels, places, strict=True):
        grid = values[values["place"] == place].set_index("task").filter(like="layer ").T
        panel.imshow(grid, cmap="Greys", vmin=0, vmax=1, aspect="auto", origin="lower")
        for row, weights in enumerate(grid.to_numpy()):
            for column, weight in enumerate(weights):
                color = "white" if weight > 0.5 else "black"
                panel.text(column, row, f"{weight:.2f}", ha="center", va="center", color=color)
        panel.set_xticks(range(grid.shape[1]), [TASKS[task].title for task in grid], fontsize=7)
        panel.set_yticks(range(grid.shape[0]), grid.index)
        panel.set_title(f"ELMo at the {place}")
    return figure


def _panels(n: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(3.3 * n, 2.6), layout="constrained")
    return figure, figure.subplots(1, n, squeeze=False)[0]


def _save(figure: Figure, values: pd.DataFrame, stem: Path) -> list[Path]:
    paths = [stem.with_suffix(ending) for ending in (".svg", ".png", ".csv")]
    # Equal values give identical files.
    with matplotlib.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=150, metadata={"Software": None})
    values.to_csv(paths[2], index=False)
    return paths
