"""Predictions as marks on words, for all tasks alike, and where those of two models differ."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from elmo_tasks.tags import tags_to_spans

__all__ = [
    "Attention",
    "Line",
    "Mark",
    "View",
    "answer",
    "clusters",
    "entailment",
    "entities",
    "parts_of_speech",
    "roles",
    "sentiment",
    "with_differences",
]


@dataclass(frozen=True)
class Mark:
    """
    A span of words.

    # Parameters

    start, end
        The first and the last word.
    label
        What it is.
    score
        Its probability, where the model has one.
    key
        What another model must have for the two to agree; the label if it is not given.
    differs
        Whether the other model has no such mark.
    """

    start: int
    end: int
    label: str
    score: float | None = None
    key: Hashable = None
    differs: bool = False

    @property
    def identity(self) -> Hashable:
        return self.start, self.end, self.label if self.key is None else self.key


@dataclass(frozen=True)
class Line:
    """
    Words with their marks, which may be nested but do not cross.

    # Parameters

    words
        The words.
    marks
        Outer ones before inner ones.
    caption
        What the line is about; empty if there is one line.
    """

    words: list[str]
    marks: list[Mark]
    caption: str = ""


@dataclass(frozen=True)
class Attention:
    """
    # Parameters

    title
        Whose words attend to whose.
    rows, columns
        Words.
    weights
        Shape `(n_rows, n_columns)`: each row adds up to 1.
    """

    title: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]


@dataclass(frozen=True)
class View:
    """
    What is shown of a prediction.

    # Parameters

    lines
        Words with marks.
    label
        Of the whole text.
    probabilities
        Of all labels of the text.
    attention
        Between two sentences.
    nothing
        What is said if there are no marks.
    differs
        Whether another model has another label.
    """

    lines: list[Line] = field(default_factory=list)
    label: str | None = None
    probabilities: dict[str, float] = field(default_factory=dict)
    attention: list[Attention] = field(default_factory=list)
    nothing: str = ""
    differs: bool = False

    @property
    def labels(self) -> list[str]:
        """The labels of all marks, in the order in which they appear."""
        return list(dict.fromkeys(mark.label for line in self.lines for mark in line.marks))


def entities(prediction: dict[str, Any]) -> View:
    """Entities with their probabilities."""
    marks = [Mark(span["start"], span["end"], span["label"], span["score"]) for span in prediction["spans"]]
    return View([Line(prediction["words"], marks)], nothing="No entity was found.")


def parts_of_speech(prediction: dict[str, Any]) -> View:
    """A tag for each word."""
    marks = [Mark(place, place, tag) for place, tag in enumerate(prediction["tags"])]
    return View([Line(prediction["words"], marks)])


def roles(prediction: dict[str, Any]) -> View:
    """The arguments of each predicate."""
    lines = [
        Line(
            prediction["words"],
            [Mark(start, end, label) for label, start, end in tags_to_spans(verb["tags"])],
            verb["verb"],
        )
        for verb in prediction["verbs"]
    ]
    return View(lines, nothing="No verb was found.")


def sentiment(prediction: dict[str, Any]) -> View:
    """The label of a sentence."""
    return View(label=prediction["label"], probabilities=prediction["probabilities"])


def entailment(prediction: dict[str, Any]) -> View:
    """The relation of two sentences, and the attention of each to the other."""
    premise, hypothesis = prediction["premise_tokens"], prediction["hypothesis_tokens"]
    weights = prediction["attention"]
    attention = [
        Attention("Each word of the premise attends to the hypothesis", premise, hypothesis, weights["premise"]),
        Attention("Each word of the hypothesis attends to the premise", hypothesis, premise, weights["hypothesis"]),
    ]
    return View(label=prediction["label"], probabilities=prediction["probabilities"], attention=attention)


def answer(prediction: dict[str, Any]) -> View:
    """The answer in its passage."""
    start, end = prediction["best_span"]
    return View([Line(prediction["passage_tokens"], [Mark(start, end, "answer", prediction["score"])])])


def clusters(prediction: dict[str, Any]) -> View:
    """The mentions of each cluster, which are numbered in the order of the text."""
    words = list(chain.from_iterable(prediction["sentences"]))
    found = sorted(sorted(map(tuple, cluster)) for cluster in prediction["clusters"])
    marks = []
    for number, mentions in enumerate(found, start=1):
        for before, mention in zip([None, *mentions], mentions, strict=False):
            start, end = mention
            # Two models agree on a mention if they link it to the same one before it.
            marks.append(Mark(start, end, str(number), key=("linked to", before)))
    marks.sort(key=lambda mark: (mark.start, -mark.end))
    return View([Line(words, marks)], nothing="No two mentions of the same thing were found.")


def with_differences(views: Sequence[View]) -> list[View]:
    """
    # Parameters

    views
        What several models predict for the same text.

    # Returns

    `List[View]`
        The same, in which each mark that not all of them have, and each label that not all of them share, differs.
    """
    if len({view.label for view in views}) > 1:
        views = [replace(view, differs=True) for view in views]
    of_views = [set(_identities(view)) for view in views]
    common = set.intersection(*of_views)
    return [
        replace(
            view,
            lines=[
                replace(
                    line,
                    marks=[
                        replace(mark, differs=(number, line.caption, mark.identity) not in common)
                        for mark in line.marks
                    ],
                )
                for number, line in enumerate(view.lines)
            ],
        )
        for view in views
    ]


def _identities(view: View) -> Iterable[Hashable]:
    for number, line in enumerate(view.lines):
        for mark in line.marks:
            yield number, line.caption, mark.identity
