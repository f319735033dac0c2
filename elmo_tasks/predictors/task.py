"""What a task says about itself: its description, the instances of a text, and the result."""

import copy
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import ListField

from elmo_tasks.predictors.results import Json, ResultType
from elmo_tasks.text import Word, as_words

__all__ = ["Input", "Task", "as_tokens", "place_of", "span_in", "tokens_of"]


class Input(NamedTuple):
    """
    Texts for a task, and the instances of each part that is read separately: of each sentence, or
    of the whole.
    """

    texts: tuple[str, ...]
    parts: list[Any]


class Task:
    """
    What a task takes and gives. `JsonLinesPredictor` adds what all tasks share, so the predictor of
    a new task only overrides some of these.

    Texts, or a JSON line, become an `Input` with instances. `finish` completes the model's output
    for an instance. From the outputs, `result` makes the plain result of the texts, and
    `prediction` the form of AllenNLP's JSON lines.
    """

    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    """What the task finds, and what the plain result consists of."""
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    """The names of the texts that the task takes."""
    keys: ClassVar[dict[str, str]] = {}
    """For inputs that a data set calls differently, the key in a line."""
    examples: ClassVar[Sequence[tuple[str, ...]]] = ()
    """Values of `inputs`."""
    result_type: ClassVar[type[ResultType]] = Json
    """The kind of the plain result: see `elmo_tasks.predictors.results`."""
    without_words: ClassVar[JsonDict] = {"label": None, "probabilities": {}}
    """The output for a text without words."""

    _dataset_reader: DatasetReader
    _language: str

    def read(self, *texts: str) -> Input:
        """The instances of texts, which are values of `inputs`. A part without words has none."""
        has_words = all(text.strip() for text in texts)
        return Input(texts, [[self._dataset_reader.text_to_instance(*texts)] if has_words else []])

    def read_line(self, line: JsonDict) -> Input:
        """The one part of a JSON line. Errors get the line's number."""
        return self.read(*(self.text_in(line, name) for name in self.inputs))

    def instances_of(self, parts: list[Any]) -> list[list[Instance]]:
        """The instances of each of many parts, if `read` cannot make them one by one."""
        return parts

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        """Completes the model's output for an instance."""
        return output

    def prediction(self, part: Any, outputs: list[JsonDict]) -> JsonDict:
        """AllenNLP's form of a part, from the finished outputs of its instances."""
        return outputs[0] if outputs else copy.deepcopy(self.without_words)

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        """
        The plain result of texts, from the finished outputs of all instances, or from
        `without_words`. By default, what the kind takes from the only output.
        """
        return self.result_type.from_output(outputs[0])

    def label_of(self, label: str) -> str:
        """
        The label in a result for one in the model's vocabulary, such as `PER` for the tag `B-PER`.
        Empty: none.
        """
        return label

    def text_in(self, line: JsonDict, name: str) -> Any:
        """The text of an input in a line."""
        return line[name if name in line else self.keys.get(name, name)]


def as_tokens(words: Any) -> list[Token]:
    """AllenNLP's tokens for words, which may have places in a text."""
    if isinstance(words, list) and all(isinstance(word, Word) for word in words):
        return [Token(*word) for word in words]
    return list(map(Token, as_words(words)))


def tokens_of(text: Any) -> list[Token]:
    """The tokens of a text, or of all sentences of a document."""
    return (
        list(chain.from_iterable(map(tokens_of, text)))
        if isinstance(text, ListField)
        else list(text)
    )


def place_of(tokens: Sequence[Token], start: int, end: int) -> dict[str, int]:
    """
    The offsets of a span's first character and of the character after its last, if the words come
    from a text.
    """
    return (
        {}
        if tokens[start].idx is None
        else {"start_char": tokens[start].idx, "end_char": tokens[end].idx_end}
    )


def span_in(text: str, place: JsonDict) -> JsonDict:
    """A span of a plain result, from one with `start_char` and `end_char`."""
    start, end = place["start_char"], place["end_char"]
    return {"text": text[start:end], "start": start, "end": end}
