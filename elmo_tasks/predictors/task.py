"""What a task says about itself: its description, a text's instances, and the plain result."""

import copy
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, Literal

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import ListField

from elmo_tasks.text import Word, as_words

__all__ = ["Task", "as_tokens", "place_of", "span_in", "tokens_of"]


class Task:
    """
    What a task takes and gives. `JsonLinesPredictor` adds what all tasks share, so the predictor of a new task only
    overrides some of these.

    A *line* is a JSON object with the texts of one input. It becomes instances, the model's output for each of them is
    completed by `finish`, and these outputs are joined to the prediction of the line. For texts, `plain` makes a result
    from the same outputs.
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
    shown_as: ClassVar[Literal["spans", "roles", "label", "answer", "chains", "json"]] = "json"
    """How the demo shows the plain result."""
    without_words: ClassVar[JsonDict] = {"label": None, "probabilities": {}}
    """The prediction of a line without words."""

    _dataset_reader: DatasetReader
    _language: str

    def lines(self, *texts: str) -> list[JsonDict]:
        """The lines for one input of the task: values of `inputs`."""
        return [dict(zip(self.inputs, texts, strict=True))]

    def text_in(self, line: JsonDict, name: str) -> Any:
        """The text of an input in a line."""
        return line[name if name in line else self.keys.get(name, name)]

    def parse(self, line: JsonDict) -> Any:
        """What a line means, for `instances_of`. The errors of this method get the line's number."""
        texts = [self.text_in(line, name) for name in self.inputs]
        return [self._dataset_reader.text_to_instance(*texts)] if all(text.strip() for text in texts) else []

    def instances_of(self, parsed: list[Any]) -> list[list[Instance]]:
        """The instances of each of many lines: by default, what `parse` returns. None: a line without words."""
        return parsed

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        """Completes the model's output for an instance."""
        return output

    def joined(self, parsed: Any, outputs: list[JsonDict]) -> JsonDict:
        """The prediction of a line, from the finished outputs of its instances."""
        return outputs[0] if outputs else copy.deepcopy(self.without_words)

    def plain(self, outputs: list[JsonDict], *texts: str) -> Any:
        """
        The result for one input, from the finished outputs of all its instances, or from `without_words`. By default
        the probabilities of the labels, if the result is shown as a label.
        """
        return outputs[0]["probabilities"] if self.shown_as == "label" else outputs[0]


def as_tokens(words: Any) -> list[Token]:
    """AllenNLP's tokens for words, which may have places in a text."""
    if isinstance(words, list) and all(isinstance(word, Word) for word in words):
        return [Token(*word) for word in words]
    return list(map(Token, as_words(words)))


def tokens_of(text: Any) -> list[Token]:
    """The tokens of a text, or of all sentences of a document."""
    return list(chain.from_iterable(map(tokens_of, text))) if isinstance(text, ListField) else list(text)


def place_of(tokens: Sequence[Token], start: int, end: int) -> dict[str, int]:
    """The offsets of a span's first character and of the character after its last, if the words come from a text."""
    return {} if tokens[start].idx is None else {"start_char": tokens[start].idx, "end_char": tokens[end].idx_end}


def span_in(text: str, place: JsonDict) -> JsonDict:
    """A span of a plain result, from one with `start_char` and `end_char`."""
    start, end = place["start_char"], place["end_char"]
    return {"text": text[start:end], "start": start, "end": end}
