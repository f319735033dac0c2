"""
Trained models on the page: how the plain results of a task are shown, as its predictor describes
them.
"""

from functools import partial
from pathlib import Path
from typing import Any

import gradio
from gradio.components import Component

from elmo_tasks.predictors import TrainedTask
from elmo_tasks.predictors.pictures import picture

__all__ = ["TaskArchive"]


class TaskArchive:
    """
    A trained model, with the options of `TrainedTask`. spaCy's rules for `language` split texts
    into words.
    """

    def __init__(self, path: Path, language: str, **options: Any) -> None:
        self.trained = TrainedTask(path, language=language, **options)
        self._language = language
        self.predictor = self.trained.predictor
        self.name = self.trained.name
        if hasattr(self.predictor, "attention"):
            self.predictor.attention = True

    def predict(self, *texts: str) -> Any:
        """The plain result."""
        for name, text in zip(self.predictor.inputs, texts, strict=True):
            if not text.strip():
                raise ValueError(f"expected a {name}, got no words")
        return self.trained(*texts)

    def components(self) -> list[Component]:
        """What shows a result; at first, of the task's first example."""
        texts = [
            partial(gradio.Textbox, label=f"{self.name}: {key}")
            for key in self.trained.result_type.texts
        ]
        kinds: list[Any] = [partial(gradio.HTML, padding=True), *texts]
        example = next(iter(self.predictor.examples), None)
        values = self.values(*example) if example else [None] * len(kinds)
        return [kind(value=value) for kind, value in zip(kinds, values, strict=True)]

    def values(self, *texts: str) -> list[Any]:
        """The contents of the components."""
        result = self.predict(*texts)
        result_type = self.trained.result_type
        return [
            picture(result_type, texts[-1], result, self._language),
            *(result[key] for key in result_type.texts),
        ]
