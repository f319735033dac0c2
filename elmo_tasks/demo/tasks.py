"""Trained models on the page: how the plain results of a task are shown, as its predictor describes them."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import gradio
import pandas as pd
from gradio.components import Component

from elmo_tasks.predictors import TrainedTask

__all__ = ["TaskArchive"]


class TaskArchive:
    """A trained model: what `TrainedTask` takes. spaCy's rules for `language` split texts into words."""

    def __init__(self, path: Path, language: str) -> None:
        self.trained = TrainedTask(path, language=language)
        self.predictor = self.trained.predictor
        self.name = self.trained.name
        self._has_attention = hasattr(self.predictor, "attention")
        if self._has_attention:
            self.predictor.attention = True

    def predict(self, *texts: str) -> Any:
        """The plain result."""
        for name, text in zip(self.predictor.inputs, texts, strict=True):
            if not text.strip():
                raise ValueError(f"expected a {name}, got no words")
        return self.trained(*texts)

    def components(self) -> list[Component]:
        """What shows a result."""
        if self.predictor.shown_as in ("spans", "roles", "answer"):
            return [gradio.HighlightedText(label=self.name, combine_adjacent=False, show_legend=False)]
        if self.predictor.shown_as == "chains":
            return [gradio.Dataframe(label=self.name, wrap=True), gradio.Textbox(label=f"{self.name}: resolved")]
        if self.predictor.shown_as == "json":
            return [gradio.JSON(label=self.name)]
        sides = self.predictor.inputs if self._has_attention else ()
        tables = (gradio.Dataframe(label=f"{self.name}: attention of the {side}") for side in sides)
        return [gradio.Label(label=self.name), *tables]

    def values(self, *texts: str) -> list[Any]:
        """The contents of the components."""
        result, kind = self.predict(*texts), self.predictor.shown_as
        if kind == "spans":
            return [_marked(texts[-1], result)]
        if kind == "answer":
            return [_marked(texts[-1], [result | {"label": f"{result['probability']:.2f}"}])]
        if kind == "roles":
            frames = [[*_marked(texts[-1], frame["roles"]), ("\n", None)] for frame in result]
            return [list(chain.from_iterable(frames)) or _marked(texts[-1], [])]
        if kind == "chains":
            mentions = [" | ".join(mention["text"] for mention in chain) for chain in result["chains"]]
            return [pd.DataFrame({"chain": range(1, len(mentions) + 1), "mentions": mentions}), result["resolved"]]
        if kind == "json":
            return [result]
        # Gradio expects texts as labels.
        probabilities = {str(label): share for label, share in result.get("probabilities", result).items()}
        return [probabilities, *(_attention(**table) for table in result.get("attention", ()))]


def _marked(text: str, spans: Iterable[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """The parts of a text: spans, which must not overlap, with their labels, and what is between them."""
    marked: list[tuple[str, str | None]] = []
    done = 0
    for span in sorted(spans, key=lambda span: span["start"]):
        marked += [(text[done : span["start"]], None), (span["text"], span["label"])]
        done = span["end"]
    return [*marked, (text[done:], None)]


def _attention(rows: list[str], columns: list[str], weights: list[list[float]]) -> pd.DataFrame:
    """A row for each word, with its weights for the words of the other sentence; words may be repeated."""
    numbered = [f"{word} ({number})" if columns.count(word) > 1 else word for number, word in enumerate(columns)]
    table = pd.DataFrame(weights, columns=numbered).round(2)
    table.insert(0, "", rows, allow_duplicates=True)
    return table
