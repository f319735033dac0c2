"""
Trained models on the page: how the plain results of a task are shown, as its predictor describes
them.
"""

from pathlib import Path
from typing import Any

import gradio
from gradio.components import Component

from elmo_tasks.predictors import TrainedTask
from elmo_tasks.predictors.pictures import picture

__all__ = ["DemoTask"]


class DemoTask:
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
        keys = self.trained.result_type.texts
        values: list[Any] = [None] * (1 + len(keys))
        if self.predictor.examples:
            values = self.values(*self.predictor.examples[0])
        components: list[Component] = [gradio.HTML(values[0], padding=True)]
        for key, text in zip(keys, values[1:], strict=True):
            components.append(gradio.Textbox(text, label=f"{self.name}: {key}"))
        return components

    def values(self, *texts: str) -> list[Any]:
        """The contents of the components."""
        result = self.predict(*texts)
        result_type = self.trained.result_type
        values = [picture(result_type, texts[-1], result, self._language)]
        values += [result[key] for key in result_type.texts]
        return values
