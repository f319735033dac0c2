"""The base of all predictors: JSON lines, and errors that name the line or the key."""

import json
from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

__all__ = ["JsonLinesPredictor", "are_words"]


class JsonLinesPredictor(Predictor):
    """
    A predictor whose errors say which line or key is wrong, and what a line looks like. With `--use-dataset-reader`,
    `allennlp predict` reads the files of the task instead.

    A subclass has the three class variables, and overrides `instance_of`.

    # Parameters

    model : `Model`
        The model.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    """

    # A line.
    example: ClassVar[JsonDict]
    # What a line must have, as an error says it.
    rule: ClassVar[str]
    # The forms of a line: a key that tells the form, and the other keys that a line of this form may have.
    forms: ClassVar[dict[str, tuple[str, ...]]]

    def __init__(self, model: Model, dataset_reader: DatasetReader) -> None:
        super().__init__(model, dataset_reader)
        self._n_lines = 0

    def instance_of(self, inputs: JsonDict) -> Instance | None:
        """
        The instance of a line, whose keys are known to be allowed.

        # Returns

        `Optional[Instance]`
            `None` if the line is not as `rule` says.
        """
        raise NotImplementedError

    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is not a JSON object.
        """
        self._n_lines += 1
        try:
            inputs = json.loads(line)
            if not isinstance(inputs, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise ValueError(
                f"line {self._n_lines} (empty ones not counted) must be a JSON object like "
                f"{json.dumps(self.example)}, but is {line.strip()!r:.100} ({error})"
            ) from None
        return inputs

    def check_keys(self, inputs: Any) -> None:
        """
        # Raises

        `ValueError`
            If a line is of no form, or has a key that would be ignored.
        """
        form = next((key for key in self.forms if key in inputs), None) if isinstance(inputs, dict) else None
        if form is None:
            raise self.broken_rule(inputs)
        allowed = form, *self.forms[form]
        for key in inputs:
            if key not in allowed:
                others = [other for other, further in self.forms.items() if key in (other, *further)]
                remedy = f'drop it, or give "{others[0]}" in place of "{form}"' if others else "drop it"
                raise ValueError(
                    f'a line with "{form}" may have the {"keys" if len(allowed) > 1 else "key"} '
                    f"{', '.join(map(json.dumps, allowed))}, but has {json.dumps(key)}, which would be ignored: "
                    f"{remedy} (files of the task are read with --use-dataset-reader): {json.dumps(inputs)[:200]}"
                )

    def broken_rule(self, inputs: Any) -> ValueError:
        """The error for a line that is not as `rule` says."""
        return ValueError(f"the input must have {self.rule}, but is {json.dumps(inputs)[:200]}")

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        self.check_keys(json_dict)
        instance = self.instance_of(json_dict)
        if instance is None:
            raise self.broken_rule(json_dict)
        return instance


def are_words(value: Any) -> bool:
    """Whether a value of a line is a list of words."""
    return isinstance(value, list) and all(isinstance(word, str) for word in value)
