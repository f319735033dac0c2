"""Trained models on the page: how the plain results of a task are shown, as its predictor describes them."""

from functools import partial
from pathlib import Path
from typing import Any

import gradio
import pandas as pd
from gradio.components import Component

from elmo_tasks.predictors import TrainedTask
from elmo_tasks.predictors.views import picture
from elmo_tasks.vectors.devices import Device

__all__ = ["TaskArchive"]


class TaskArchive:
    """A trained model: what `TrainedTask` takes. spaCy's rules for `language` split texts into words."""

    def __init__(self, path: Path, language: str, device: Device = None) -> None:
        self.trained = TrainedTask(path, language=language, device=device)
        self._language = language
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
        """What shows a result; at first, of the task's first example."""
        kinds: list[Any] = [partial(gradio.HTML, padding=True)]
        if self.predictor.shown_as == "chains":
            kinds.append(partial(gradio.Textbox, label=f"{self.name}: resolved"))
        elif self.predictor.shown_as == "json":
            kinds = [partial(gradio.JSON, label=self.name)]
        elif self.predictor.shown_as == "label":
            sides = self.predictor.inputs if self._has_attention else ()
            kinds = [partial(gradio.Label, label=self.name)]
            kinds += [partial(gradio.Dataframe, label=f"{self.name}: attention of the {side}") for side in sides]
        example = next(iter(self.predictor.examples), None)
        values = self.values(*example) if example else [None] * len(kinds)
        return [kind(value=value) for kind, value in zip(kinds, values, strict=True)]

    def values(self, *texts: str) -> list[Any]:
        """The contents of the components."""
        result, kind = self.predict(*texts), self.predictor.shown_as
        if kind in ("spans", "roles", "answer", "chains"):
            drawn = picture(kind, texts[-1], result, self._language)
            return [drawn, result["resolved"]] if kind == "chains" else [drawn]
        if kind == "json":
            return [result]
        # Gradio expects texts as labels.
        probabilities = {str(label): share for label, share in result.get("probabilities", result).items()}
        return [probabilities, *(_attention(**table) for table in result.get("attention", ()))]


def _attention(rows: list[str], columns: list[str], weights: list[list[float]]) -> pd.DataFrame:
    """A row for each word, with its weights for the words of the other sentence; words may be repeated."""
    numbered = [f"{word} ({number})" if columns.count(word) > 1 else word for number, word in enumerate(columns)]
    table = pd.DataFrame(weights, columns=numbered).round(2)
    table.insert(0, "", rows, allow_duplicates=True)
    return table
