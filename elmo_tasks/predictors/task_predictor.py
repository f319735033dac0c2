"""What a task says about itself: its description, the instances of a text, and the result."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance

from elmo_tasks.predictors.results import Json, ResultType

__all__ = ["TaskInput", "TaskPredictor", "TextPart"]

TextPart = Any
"""
A part of a text that is read separately, a sentence or the whole text: the list of its instances,
or what `TaskPredictor.instances_of` makes them from.
"""


class TaskInput(NamedTuple):
    """Texts for a task, and their parts."""

    texts: tuple[str, ...]
    parts: list[TextPart]


class TaskPredictor:
    """
    What a task takes and gives. `JsonLinesPredictor` adds what all tasks share, so the predictor of
    a new task only overrides some of these.

    Texts, or a JSON line, become a `TaskInput` with instances. `finish` completes the model's
    output for an instance. From the outputs, `result` makes the plain result of the texts, and
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
    """The type of the plain result: see `elmo_tasks.predictors.results`."""
    without_words: ClassVar[JsonDict] = {"label": None, "probabilities": {}}
    """The output for a text without words."""

    _dataset_reader: DatasetReader
    _language: str

    def read(self, *texts: str) -> TaskInput:
        """The instances of texts, which are values of `inputs`. A part without words has none."""
        instances = []
        if all(text.strip() for text in texts):
            instances.append(self._dataset_reader.text_to_instance(*texts))
        return TaskInput(texts, [instances])

    def read_line(self, line: JsonDict) -> TaskInput:
        """The one part of a JSON line. Errors get the line's number."""
        texts = [self.text_in(line, name) for name in self.inputs]
        return self.read(*texts)

    def instances_of(self, parts: list[TextPart]) -> list[list[Instance]]:
        """The instances of each of many parts, if `read` cannot make them one by one."""
        return parts

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        """Completes the model's output for an instance."""
        return output

    def prediction(self, part: TextPart, outputs: list[JsonDict]) -> JsonDict:
        """AllenNLP's form of a part, from the finished outputs of its instances."""
        if not outputs:
            return copy.deepcopy(self.without_words)
        return outputs[0]

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        """
        The plain result of texts, from the finished outputs of all instances, or from
        `without_words`. By default, what the result type takes from the only output.
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
        if name in line:
            return line[name]
        return line[self.keys.get(name, name)]
