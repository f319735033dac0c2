"""Trained models on the page: the inputs of each task, and how its predictions are shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import gradio
import pandas as pd
from allennlp.models import Model, load_archive
from allennlp.predictors import Predictor
from gradio.components import Component

from elmo_tasks.tags import Span, tags_to_spans
from elmo_tasks.text import in_nfc

__all__ = ["TASKS", "Task", "TaskArchive"]

_Prediction = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """
    A task on the page. `inputs` are the keys of its predictor's JSON, and `examples` are values for them. `components`
    creates the components that show the predictions of an archive, given its name; `values` returns their contents.
    """

    name: str
    title: str
    inputs: Sequence[str]
    examples: list[list[str]]
    components: Callable[[str], list[Component]]
    values: Callable[[_Prediction], list[Any]]


def _highlighted(name: str) -> list[Component]:
    return [gradio.HighlightedText(label=name, combine_adjacent=False, show_legend=False)]


def _label_and_attention(name: str) -> list[Component]:
    tables = (gradio.Dataframe(label=f"{name}: attention of the {side}") for side in ("premise", "hypothesis"))
    return [gradio.Label(label=name), *tables]


def _marked(words: list[str], spans: Sequence[Span]) -> list[tuple[str, str | None]]:
    """The texts of spans, which must not overlap, with their labels, and the texts between them."""
    marked: list[tuple[str, str | None]] = []
    done = 0
    for label, start, end in sorted(spans, key=lambda span: span[1]):
        marked += [(" ".join(words[done:start]) + " ", None), (" ".join(words[start : end + 1]), label), (" ", None)]
        done = end + 1
    return [*marked, (" ".join(words[done:]), None)]


def _entities(prediction: _Prediction) -> list[Any]:
    return [_marked(prediction["words"], [(s["label"], s["start"], s["end"]) for s in prediction["spans"]])]


def _roles(prediction: _Prediction) -> list[Any]:
    words = prediction["words"]
    frames = ([*_marked(words, tags_to_spans(verb["tags"])), ("\n", None)] for verb in prediction["verbs"])
    return [list(chain.from_iterable(frames)) or [(" ".join(words), None)]]


def _entailment(prediction: _Prediction) -> list[Any]:
    sides = prediction["premise_tokens"], prediction["hypothesis_tokens"]
    weights = prediction["attention"]["premise"], prediction["attention"]["hypothesis"]
    return [prediction["probabilities"], _attention(weights[0], *sides), _attention(weights[1], *reversed(sides))]


def _attention(weights: list[list[float]], rows: list[str], columns: list[str]) -> pd.DataFrame:
    """A row for each word, with its weights for the words of the other sentence; words may be repeated."""
    numbered = [f"{word} ({number})" if columns.count(word) > 1 else word for number, word in enumerate(columns)]
    table = pd.DataFrame(weights, columns=numbered).round(2)
    table.insert(0, "", rows, allow_duplicates=True)
    return table


def _answer(prediction: _Prediction) -> list[Any]:
    return [_marked(prediction["passage_tokens"], [(f"{prediction['score']:.2f}", *prediction["best_span"])])]


def _clusters(prediction: _Prediction) -> list[Any]:
    words = list(chain.from_iterable(prediction["sentences"]))
    mentions = [[" ".join(words[start : end + 1]) for start, end in cluster] for cluster in prediction["clusters"]]
    rows = [{"cluster": number, "mentions": " | ".join(texts)} for number, texts in enumerate(mentions, start=1)]
    return [pd.DataFrame(rows, columns=["cluster", "mentions"])]


TASKS: dict[str, Task] = {
    "elmo_ner": Task(
        "ner",
        "Named entities",
        ["sentence"],
        [
            ["Angela Merkel met Tim Cook of Apple in Berlin."],
            ["Watching Game of Thrones in Dublin with @sarah before the Coldplay concert."],
            ["Jordan beat Chelsea at Wembley."],
        ],
        _highlighted,
        _entities,
    ),
    "elmo_srl": Task(
        "srl",
        "Semantic roles",
        ["sentence"],
        [
            ["She gave the children a book and they read it in the garden."],
            ["The committee rejected the plan because it would cost too much."],
            ["If the tenant does not pay the rent, the landlord may end the contract."],
        ],
        _highlighted,
        _roles,
    ),
    "elmo_snli": Task(
        "snli",
        "Entailment",
        ["premise", "hypothesis"],
        [
            ["Two dogs run across a green field.", "Animals are outside."],
            ["A woman in a red coat buys fruit at a market.", "The woman is asleep at home."],
            ["A man plays the guitar on a stage.", "The man is famous."],
        ],
        _label_and_attention,
        _entailment,
    ),
    "elmo_sst": Task(
        "sst",
        "Sentiment",
        ["sentence"],
        [
            ["A warm and funny film with a wonderful cast."],
            ["Long, loud and very dull."],
            ["The story is thin, but the songs are a delight."],
        ],
        lambda name: [gradio.Label(label=name)],
        lambda prediction: [prediction["probabilities"]],
    ),
    "elmo_squad": Task(
        "squad",
        "Questions",
        ["question", "passage"],
        [
            ["Who designed the bridge?", "The bridge was designed by Anna Keller. It crosses the river at Bern."],
            ["When did the museum open?", "The museum opened in 1897, two years after the fire destroyed its library."],
            ["What do bees collect?", "Bees visit flowers to collect nectar, which they turn into honey in the hive."],
        ],
        _highlighted,
        _answer,
    ),
    "elmo_coref": Task(
        "coref",
        "Coreference",
        ["document"],
        [
            ["Ann met her brother at the station. She was tired, and he carried her bag."],
            ["The old captain told his crew to wait. He would go ashore alone, and they should keep the ship ready."],
            ["Mr. Darcy wrote a letter to Elizabeth. She read it twice before she could believe him."],
        ],
        lambda name: [gradio.Dataframe(label=name, wrap=True)],
        _clusters,
    ),
    "elmo_pos": Task(
        "pos",
        "Parts of speech",
        ["sentence"],
        [["They play on Saturdays ."], ["The play was a great success ."]],
        _highlighted,
        lambda prediction: [list(zip(prediction["words"], prediction["tags"], strict=True))],
    ),
}
"""The keys are the registered names of the models."""


class TaskArchive:
    """A trained model: an archive or the folder of a run. spaCy's rules for `language` split texts into words."""

    def __init__(self, path: Path, language: str) -> None:
        archive = load_archive(str(path))
        model = archive.config["model"]["type"]
        if model not in TASKS:
            raise ValueError(f"expected a model of {', '.join(TASKS)}, got {model!r}: {path}")
        self.task = TASKS[model]
        self.name = path.resolve().parent.name if path.name == "model.tar.gz" else path.name
        known = signature(Predictor.by_name(Model.by_name(model).default_predictor)).parameters
        extra_args = {"language": language} | ({"attention": True} if "attention" in known else {})
        self._predictor = Predictor.from_archive(archive, extra_args=extra_args)

    def predict(self, *texts: str) -> _Prediction:
        """The prediction, as `allennlp predict` writes it."""
        for key, text in zip(self.task.inputs, texts, strict=True):
            if not text.strip():
                raise ValueError(f"expected a {key}, got no words")
        line = dict(zip(self.task.inputs, map(in_nfc, texts), strict=True))
        prediction: _Prediction = self._predictor.predict_json(line)
        return prediction
