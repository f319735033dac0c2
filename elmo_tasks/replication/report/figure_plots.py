"""Figures 1 and 2, drawn: readable in print, in black and white too."""

import csv
import io
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.figure_values import Row

__all__ = ["curves_svg", "draw_curves", "draw_mixes", "mixes_svg", "write_csv"]

# Of a column of print, in inches.
_WIDTH, _HEIGHT = 3.3, 2.6
_STYLES = (("o", "-", "black"), ("s", "--", "0.35"), ("^", ":", "0.55"))


def write_csv(rows: Sequence[Row], path: Path) -> Path:
    """Writes the values of a figure, and returns the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def draw_curves(rows: Sequence[Row], x: str, stem: Path) -> list[Path]:
    """
    Figure 1: a panel for each task, a line for each variant, its standard deviation as a band.

    # Parameters

    rows
        Of `by_sizes` or `by_epochs`; at least one.
    x
        `"size"`, on a logarithmic axis, or `"epoch"`.
    stem
        The files, without their endings.

    # Returns

    `List[Path]`
        `.png`, `.svg` and `.csv`.
    """
    return [*_save(_curves(rows, x), stem), write_csv(rows, stem.with_name(stem.name + ".csv"))]


def curves_svg(rows: Sequence[Row], x: str, name: str) -> str:
    """As `draw_curves`, as an element of a page; `name` makes its ids different from those of other figures."""
    return _svg(_curves(rows, x), name)


def mixes_svg(rows: Sequence[Row], name: str) -> str:
    """As `draw_mixes`, as an element of a page; `name` makes its ids different from those of other figures."""
    return _svg(_mixes(rows), name)


def _curves(rows: Sequence[Row], x: str) -> Any:
    tasks = [task for task in TASKS if any(row["task"] == task for row in rows)]
    figure, panels = _panels(len(tasks))
    for panel, task in zip(panels, tasks, strict=True):
        variants = list(dict.fromkeys(row["variant"] for row in rows if row["task"] == task))
        for variant, (marker, line, color) in zip(variants, _STYLES, strict=False):
            chosen = [row for row in rows if (row["task"], row["variant"]) == (task, variant)]
            xs, means = [row[x] for row in chosen], [row["mean"] for row in chosen]
            sds = [row["sd"] or 0.0 for row in chosen]
            name = (variant if variant == "baseline" else f"ELMo ({variant})").replace("$", r"\$")
            panel.plot(xs, means, marker=marker, linestyle=line, color=color, markersize=3, linewidth=1, label=name)
            low = [mean - sd for mean, sd in zip(means, sds, strict=True)]
            high = [mean + sd for mean, sd in zip(means, sds, strict=True)]
            panel.fill_between(xs, low, high, color=color, alpha=0.15, linewidth=0)
        panel.set_title(TASKS[task].title)
        panel.set_xlabel("training examples" if x == "size" else "epoch")
        panel.set_ylabel(f"{TASKS[task].score}, dev (%)")
        if x == "size":
            panel.set_xscale("log")
        else:
            panel.xaxis.get_major_locator().set_params(integer=True)
        panel.legend(frameon=False)
    return figure


def draw_mixes(rows: Sequence[Row], stem: Path) -> list[Path]:
    """
    Figure 2: for each place a grid of layers and tasks, darker where the weight is larger, with the mean over seeds in
    each cell.

    # Parameters

    rows
        Of `mixes`; at least one.
    stem
        The files, without their endings.

    # Returns

    `List[Path]`
        `.png`, `.svg` and `.csv`.
    """
    return [*_save(_mixes(rows), stem), write_csv(rows, stem.with_name(stem.name + ".csv"))]


def _mixes(rows: Sequence[Row]) -> Any:
    places = [place for place in ("input", "output") if any(row["place"] == place for row in rows)]
    figure, panels = _panels(len(places))
    for panel, place in zip(panels, places, strict=True):
        here = [row for row in rows if row["place"] == place]
        tasks = [task for task in TASKS if any(row["task"] == task for row in here)]
        layers = sorted({row["layer"] for row in here})
        grid = [[_mean(row for row in here if (row["task"], row["layer"]) == (t, j)) for t in tasks] for j in layers]
        panel.imshow(grid, cmap="Greys", vmin=0, vmax=1, aspect="auto", origin="lower")
        for j, weights in enumerate(grid):
            for i, weight in enumerate(weights):
                if math.isnan(weight):  # The biLM of this task has fewer layers.
                    continue
                panel.text(i, j, f"{weight:.2f}", ha="center", va="center", color="white" if weight > 0.5 else "black")
        panel.set_xticks(range(len(tasks)), [TASKS[task].title for task in tasks])
        panel.set_yticks(range(len(layers)), [f"layer {layer}" for layer in layers])
        panel.set_title(f"ELMo at the {place}")
    return figure


def _mean(rows: Iterable[Row]) -> float:
    weights = [row["weight"] for row in rows]
    return statistics.fmean(weights) if weights else math.nan


def _svg(figure: Any, name: str) -> str:
    """Without the head of a file; with ids that are not those of another figure of the page."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text[text.index("<svg") :])


def _panels(n: int) -> tuple[Any, list[Any]]:
    """Without a window, and without matplotlib's own memory of figures."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"font.size": 8, "axes.titlesize": 9, "legend.fontsize": 7}):
        figure = Figure(figsize=(n * _WIDTH, _HEIGHT), layout="constrained")
        FigureCanvasAgg(figure)
        panels = [figure.add_subplot(1, n, index + 1) for index in range(n)]
    return figure, panels


def _save(figure: Any, stem: Path) -> list[Path]:
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(stem.name + ending) for ending in (".png", ".svg")]
    # Letters stay letters, and the same values give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": stem.name}):
        of_formats: list[dict[str, Any]] = [{"dpi": 300, "metadata": {"Software": None}}, {"metadata": {"Date": None}}]
        for path, options in zip(paths, of_formats, strict=True):
            with atomic_file(path) as temporary:
                figure.savefig(temporary, **options)
    return paths
