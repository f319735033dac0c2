"""A trained model for people who think in texts: a text in, plain results out."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from allennlp.common.util import JsonDict
from allennlp.models import load_archive
from allennlp.predictors import Predictor
from tqdm import tqdm

from elmo_tasks.shipped import MODELS
from elmo_tasks.text.words import blank_pipeline

__all__ = ["TrainedTask"]

_LINES_AT_ONCE = 32
_PARAGRAPH = re.compile(r"\S(?:.|\n(?!\s*\n))*")
# A line of the predictor, and its prediction; the offset of the line's text in the input.
_Part = tuple[int, JsonDict, JsonDict]


class TrainedTask:
    """
    A trained model of a task. Call it with a text, or with a list of texts for a list of results. `start` and `end` are
    character offsets in the text.

    | model | texts | result |
    |---|---|---|
    | ner | text | a list of entities, each with `text`, `start`, `end`, `label`, `probability` |
    | srl | text | a list of predicates, each with `verb` and `roles`; a role has `text`, `start`, `end`, `label` |
    | coref | text | `chains` of mentions (`text`, `start`, `end`), and `resolved`, the text with pronouns replaced |
    | squad | question, passage | the answer: `text`, `start`, `end`, `probability` |
    | snli | premise, hypothesis | the probabilities of `entailment`, `neutral` and `contradiction` |
    | sst | text | `stars`, from 1 to 5, and the `probabilities` of each number of stars |

    Named entities and semantic roles are found sentence by sentence; verbs without roles are left out. The other tasks
    read the whole text at once.

    # Parameters

    model
        The name of a model in `models/` of the checkout, an archive, or the folder of a run.
    language
        spaCy's code for the rules that split a text into words.
    """

    def __init__(self, model: str | PathLike[str], *, language: str = "en") -> None:
        included = MODELS / model
        archive = load_archive(str(included if included.is_dir() else Path(model).expanduser()))
        self._task, self._language = _TASKS[archive.config["model"]["type"]], language
        self.predictor = Predictor.from_archive(archive, extra_args={"language": language})

    def __call__(self, *texts: str | Sequence[str]) -> Any:
        """The result for a text (or a pair of texts), or a list of results for a list of texts (or two lists)."""
        is_one = isinstance(texts[0], str)
        inputs: list[Any] = [texts] if is_one else list(zip(*texts, strict=True))
        lines = [list(self._lines(each)) for each in inputs]
        flat = [line for of_input in lines for _, line in of_input]
        predictions: list[JsonDict] = []
        for start in tqdm(range(0, len(flat), _LINES_AT_ONCE), disable=None if len(inputs) > _LINES_AT_ONCE else True):
            predictions += self.predictor.predict_batch_json(flat[start : start + _LINES_AT_ONCE])
        found = iter(predictions)
        results = [self._task.result(self.predictor, [(*line, next(found)) for line in of]) for of in lines]
        return results[0] if is_one else results

    def _lines(self, texts: tuple[str, ...]) -> Iterator[tuple[int, JsonDict]]:
        if not self._task.by_sentence:
            yield 0, dict(zip(self._task.keys, texts, strict=True))
            return
        (text,) = texts
        for paragraph in _PARAGRAPH.finditer(text):
            for sentence in self._sentencizer(paragraph.group()).sents:
                yield paragraph.start() + sentence.start_char, {"sentence": sentence.text}

    @cached_property
    def _sentencizer(self) -> Any:
        pipeline = blank_pipeline(self._language)
        pipeline.add_pipe("sentencizer")
        return pipeline


def _span(text: str, place: JsonDict, offset: int = 0) -> JsonDict:
    start, end = place["start_char"], place["end_char"]
    return {"text": text[start:end], "start": offset + start, "end": offset + end}


def _entities(predictor: Predictor, parts: list[_Part]) -> list[JsonDict]:
    return [
        {**_span(line["sentence"], span, offset), "label": span["label"], "probability": span["score"]}
        for offset, line, prediction in parts
        for span in prediction["spans"]
    ]


def _predicates(predictor: Predictor, parts: list[_Part]) -> list[JsonDict]:
    return [
        {
            "verb": verb["verb"],
            "roles": [{**_span(line["sentence"], span, offset), "label": span["label"]} for span in verb["spans"]],
        }
        for offset, line, prediction in parts
        for verb in prediction["verbs"]
        # An auxiliary has no roles but itself.
        if len(verb["spans"]) > 1
    ]


def _chains(predictor: Any, parts: list[_Part]) -> JsonDict:
    ((_, line, prediction),) = parts
    text = line["document"]
    chains = [[_span(text, place) for place in chain] for chain in prediction.get("places", ())]
    return {"chains": chains, "resolved": predictor.resolved(text, prediction["clusters"])}


def _answer(predictor: Predictor, parts: list[_Part]) -> JsonDict:
    ((_, line, prediction),) = parts
    has_words = prediction["best_span"] is not None
    span = _span(line["passage"], prediction) if has_words else {"text": "", "start": None, "end": None}
    return {**span, "probability": prediction["score"]}


def _entailment(predictor: Predictor, parts: list[_Part]) -> JsonDict:
    ((_, _, prediction),) = parts
    probabilities: JsonDict = prediction["probabilities"]
    return probabilities


def _stars(predictor: Predictor, parts: list[_Part]) -> JsonDict:
    ((_, _, prediction),) = parts
    # The labels of the treebank are 0, very negative, to 4.
    probabilities = {int(label) + 1: probability for label, probability in prediction["probabilities"].items()}
    return {"stars": max(probabilities, key=lambda n: probabilities[n], default=None), "probabilities": probabilities}


class _Task(NamedTuple):
    keys: tuple[str, ...]
    result: Callable[[Any, list[_Part]], Any]
    by_sentence: bool = False


_TASKS = {
    "elmo_ner": _Task(("sentence",), _entities, by_sentence=True),
    "elmo_srl": _Task(("sentence",), _predicates, by_sentence=True),
    "elmo_coref": _Task(("document",), _chains),
    "elmo_squad": _Task(("question", "passage"), _answer),
    "elmo_snli": _Task(("premise", "hypothesis"), _entailment),
    "elmo_sst": _Task(("sentence",), _stars),
}
