"""Results of the demo as HTML. Jinja escapes every text, since all of them come from users, archives or indexes."""

import math
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from elmo_tasks.demo.views import Line, Mark, View

__all__ = [
    "header_html",
    "likelihood_html",
    "map_html",
    "mixes_html",
    "neighbors_html",
    "predictions_html",
    "similarity_html",
]

# Colours of marks in style.css.
_N_COLORS = 10
# Words on each side of a word in its sentence.
_CONTEXT = 7
# The size of a map and its margin, in pixels.
_WIDTH, _HEIGHT, _MARGIN = 360, 260, 18
# Differences between vectors of length 1 that are smaller than this come from float16.
_LEAST_EXTENT = 0.02
# A word that is this improbable has the darkest cell.
_MOST_BITS = 20.0

_Tree = list["str | tuple[Mark, _Tree]"]


def header_html(bilm: str) -> str:
    """The top of the page, with the name of the biLM."""
    return _render("header.html", bilm=bilm)


def similarity_html(found: dict[str, Any]) -> str:
    """Of `WordsInContext.similarity`."""
    # Numbers of all layers have the same scale within a layer only: the layers have different lengths.
    layers = [
        {**layer, "strips": [_strip(vector, _largest(layer["vectors"])) for vector in layer["vectors"]]}
        for layer in found["layers"]
    ]
    return _render("similarity.html", occurrences=list(map(_in_context, found["occurrences"])), layers=layers)


def neighbors_html(found: dict[str, Any]) -> str:
    """Of `WordsInContext.neighbors`."""
    of_occurrences = [
        {
            **_in_context(occurrence),
            "layers": [
                {
                    "name": layer["name"],
                    "neighbors": [
                        {**_in_context(neighbor), "similarity": neighbor["similarity"]}
                        for neighbor in layer["neighbors"][number]
                    ],
                }
                for layer in found["layers"]
            ],
        }
        for number, occurrence in enumerate(found["occurrences"])
    ]
    return _render("neighbors.html", occurrences=of_occurrences, static=found["static"])


def map_html(found: dict[str, Any]) -> str:
    """Of `WordsInContext.map`."""
    layers = []
    for layer in found["layers"]:
        points = layer["points"]
        places = _on_the_map([(point["x"], point["y"]) for point in points])
        shown = [
            {**_in_context(point), "own": point["own"], "x": x, "y": y}
            for point, (x, y) in zip(points, places, strict=True)
        ]
        # Those of the user last, so that they are on top.
        layers.append({**layer, "points": shown[::-1], "n_shown": sum(point["own"] is None for point in points)})
    of_index = [point for point in layers[0]["points"][::-1] if point["own"] is None] if layers else []
    return _render("map.html", layers=layers, of_index=of_index, width=_WIDTH, height=_HEIGHT)


def predictions_html(names: Sequence[str], views: Sequence[View]) -> str:
    """
    # Parameters

    names
        Of the archives.
    views
        What each predicts, as `with_differences` returns it.
    """
    labels = list(dict.fromkeys(label for view in views for label in view.labels))
    colors = {label: number % _N_COLORS for number, label in enumerate(labels)}
    columns = [
        {
            "name": name,
            "view": view,
            "lines": [{"caption": line.caption, "tree": _tree(line)} for line in view.lines],
            "has_marks": any(line.marks for line in view.lines),
        }
        for name, view in zip(names, views, strict=True)
    ]
    n_differences = sum(mark.differs for view in views for line in view.lines for mark in line.marks)
    differ = bool(n_differences) or any(view.differs for view in views)
    return _render("predictions.html", columns=columns, colors=colors, differ=differ)


def mixes_html(archives: Sequence[tuple[str, str, list[dict[str, Any]]]]) -> str:
    """
    # Parameters

    archives
        The name, the title of the task, and the `TaskArchive.mixes` of each.
    """
    return _render("mixes.html", archives=archives)


def likelihood_html(scores: dict[str, Any] | str) -> str:
    """Of `WordLikelihoods`, as a dictionary; or why there is none."""
    if isinstance(scores, str):
        return _render("note.html", note=scores)
    words = [*zip(scores["words"], scores["forward"], scores["backward"], scores["is_known"], strict=True)]
    rows = [
        {"word": word, "known": known, "forward": _chance(forward), "backward": _chance(backward)}
        for word, forward, backward, known in words
    ]
    n_predictions = len(words) + 1
    perplexities = [
        math.exp(-(sum(scores[way]) + scores[end]) / n_predictions)
        for way, end in (("forward", "end"), ("backward", "begin"))
    ]
    return _render(
        "likelihood.html",
        rows=rows,
        end=_chance(scores["end"]),
        begin=_chance(scores["begin"]),
        perplexities=perplexities,
    )


def _render(name: str, **values: Any) -> str:
    return _TEMPLATES.get_template(name).render(**values)


def _in_context(found: dict[str, Any]) -> dict[str, Any]:
    """The word with some of its sentence."""
    words, position = found["words"], found["position"]
    first, last = max(0, position - _CONTEXT), position + 1 + _CONTEXT
    return {
        "before": " ".join(["…"] * (first > 0) + words[first:position]),
        "word": words[position],
        "after": " ".join(words[position + 1 : last] + ["…"] * (last < len(words))),
    }


def _largest(vectors: list[list[float]]) -> float:
    return max(abs(number) for vector in vectors for number in vector) or 1.0


def _strip(vector: list[float], largest: float) -> str:
    """A gradient of CSS with a stripe for each number: blue above zero, orange below."""
    step = 100 / len(vector)
    stripes = (
        f"var(--elmo-{'above' if number > 0 else 'below'}-{round(9 * abs(number) / largest)}) "
        f"{step * place:.4g}% {step * (place + 1):.4g}%"
        for place, number in enumerate(vector)
    )
    return f"linear-gradient(to right, {', '.join(stripes)})"


def _on_the_map(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same points in pixels, with one scale for both directions."""
    centers, ranges = [], []
    for numbers in zip(*points, strict=True):
        centers.append((max(numbers) + min(numbers)) / 2)
        ranges.append(max(numbers) - min(numbers))
    sizes = [_WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN]
    scale = min(size / max(extent, _LEAST_EXTENT) for size, extent in zip(sizes, ranges, strict=True))
    return [
        (round(_WIDTH / 2 + scale * (x - centers[0]), 1), round(_HEIGHT / 2 - scale * (y - centers[1]), 1))
        for x, y in points
    ]


def _chance(log_likelihood: float) -> dict[str, float | str]:
    percent = 100 * math.exp(log_likelihood)
    bits = -log_likelihood / math.log(2)
    return {
        "percent": f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}" if percent >= 0.001 else "< 0.001",
        "bits": bits,
        "share": 100 * min(1.0, bits / _MOST_BITS),
    }


def _tree(line: Line) -> _Tree:
    """Words and marks, each with the words and marks in it."""
    tree: _Tree = []
    open_marks: list[tuple[int, _Tree]] = [(len(line.words), tree)]
    marks = iter([*line.marks, None])
    mark = next(marks)
    for place, word in zip(count(), line.words, strict=False):
        while open_marks[-1][0] < place:
            open_marks.pop()
        while mark is not None and mark.start == place:
            if mark.end > open_marks[-1][0]:
                raise ValueError(f"marks must be nested, but {mark} crosses the one that ends at {open_marks[-1][0]}")
            inside: _Tree = []
            open_marks[-1][1].append((mark, inside))
            open_marks.append((mark.end, inside))
            mark = next(marks)
        open_marks[-1][1].append(word)
    return tree


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["zip"] = zip
