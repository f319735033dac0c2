"""Archives of trained models, and their predictions as values of Gradio's components."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import gradio
import pandas as pd
from allennlp.models import load_archive
from allennlp.predictors import Predictor

from elmo_tasks.modules import LayerMix

__all__ = ["TASKS", "Task", "TaskArchive"]

Value = Any
"""What a component shows."""


def _entities(prediction: dict[str, Any]) -> Value:
    return _chunks(prediction["words"], [(span["start"], span["end"], span["label"]) for span in prediction["spans"]])


def _roles(prediction: dict[str, Any]) -> Value:
    parts: list[tuple[str, str | None]] = []
    for verb in prediction["verbs"]:
        for word, tag in zip(prediction["words"], verb["tags"], strict=True):
            parts.append((f"{word} ", None if tag == "O" else tag[2:]))
        parts.append(("\n", None))
    return parts


def _parts_of_speech(prediction: dict[str, Any]) -> Value:
    return [(f"{word} ", tag) for word, tag in zip(prediction["words"], prediction["tags"], strict=True)]


def _answer(prediction: dict[str, Any]) -> Value:
    first, last = prediction["best_span"] or (0, -1)
    return _chunks(prediction["passage_tokens"], [(first, last, "answer")] if last >= first else [])


def _clusters(prediction: dict[str, Any]) -> Value:
    rows = [[number, mention] for number, texts in enumerate(prediction["texts"], start=1) for mention in texts]
    return pd.DataFrame(rows, columns=["cluster", "mention"])


def _chunks(words: Sequence[str], spans: Sequence[tuple[int, int, str]]) -> Value:
    """The words with the labels of spans of first and last word."""
    labels: list[str | None] = [None] * len(words)
    for start, end, label in spans:
        labels[start : end + 1] = [label] * (end + 1 - start)
    return [(f"{word} ", label) for word, label in zip(words, labels, strict=True)]


def _highlighted(name: str) -> Any:
    return gradio.HighlightedText(label=name, combine_adjacent=True)


def _label(name: str) -> Any:
    return gradio.Label(label=name)


def _table(name: str) -> Any:
    return gradio.Dataframe(label=name, wrap=True)


@dataclass(frozen=True, kw_only=True)
class Task:
    """
    A task on the page: its title, the examples and the names of its inputs, the component that shows a prediction, and
    the function from a prediction to the component's value.
    """

    title: str
    examples: list[list[str]]
    value: Callable[[dict[str, Any]], Value]
    component: Callable[[str], Any] = _highlighted
    inputs: Sequence[str] = field(default=("sentence",))


TASKS: Mapping[str, Task] = {
    "elmo_ner": Task(
        title="Named entities",
        examples=[["Angela Merkel met Tim Cook of Apple in Berlin ."], ["Jordan beat Chelsea at Wembley ."]],
        value=_entities,
    ),
    "elmo_srl": Task(
        title="Semantic roles",
        examples=[["She gave the children a book and they read it in the garden ."]],
        value=_roles,
    ),
    "elmo_snli": Task(
        title="Entailment",
        inputs=("premise", "hypothesis"),
        examples=[["Two dogs run across a green field .", "Animals are outside ."]],
        value=lambda prediction: prediction["probabilities"],
        component=_label,
    ),
    "elmo_sst": Task(
        title="Sentiment",
        examples=[["A warm and funny film with a wonderful cast ."], ["Long , loud and very dull ."]],
        value=lambda prediction: prediction["probabilities"],
        component=_label,
    ),
    "elmo_squad": Task(
        title="Questions",
        inputs=("question", "passage"),
        examples=[["Who designed the bridge ?", "The bridge was designed by Anna Keller and opened in 1932 ."]],
        value=_answer,
    ),
    "elmo_coref": Task(
        title="Coreference",
        inputs=("document",),
        examples=[["Ann met her brother at the station. She was tired, and he carried her bag."]],
        value=_clusters,
        component=_table,
    ),
    "elmo_pos": Task(
        title="Parts of speech",
        examples=[["They play on Saturdays ."], ["The play was a great success ."]],
        value=_parts_of_speech,
    ),
}
"""By the registered name of the model."""


class TaskArchive:
    """A trained model with its predictor; a text is split by spaCy's rules of the language where the task allows it."""

    def __init__(self, path: Path, language: str) -> None:
        archive = load_archive(path)
        kind = archive.config["model"]["type"]
        if kind not in TASKS:
            raise ValueError(f"expected a model of {', '.join(TASKS)}, got {kind}: {path}")
        self.task = TASKS[kind]
        self.name = path.parent.name if path.name == "model.tar.gz" else path.name
        takes_language = "language" in signature(Predictor.by_name(type(archive.model).default_predictor)).parameters
        arguments = {"language": language} if takes_language else {}
        self._predictor = Predictor.from_archive(archive, extra_args=arguments)

    def show(self, *texts: str) -> Value:
        """The prediction for some texts as the value of the task's component."""
        return self.task.value(self._predictor.predict_json(dict(zip(self.task.inputs, texts, strict=True))))

    def mixes(self) -> list[str]:
        """What the model has learnt to mix, in words."""
        mixes = ((name, mix) for name, mix in self._predictor._model.named_modules() if isinstance(mix, LayerMix))
        return [
            f"{self.name}, {name}: layers "
            f"{' '.join(f'{weight:.2f}' for weight in mix.normalized_weights.tolist())}, gamma {float(mix.gamma):.2f}"
            for name, mix in mixes
        ]
