"""The base of all predictors: JSON lines, errors that name what is wrong, lines without words, and no gold."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.data.fields import without_gold
from elmo_tasks.data.formats.json_objects import json_object

__all__ = ["JsonLinesPredictor", "are_words", "readable_errors"]

_FILES_OF_THE_TASK = "files of the task are read with --use-dataset-reader"


class JsonLinesPredictor(Predictor):
    """
    A predictor whose errors say what a line looks like and what is wrong with this one; `allennlp predict` adds the
    line's number. With `--use-dataset-reader`, `allennlp predict` reads the files of the task instead. Their labels and
    tags do not reach the model, so that they need not be those of its training.

    A line without words has an empty prediction, which the model does not see: its neighbours in a batch are predicted
    as if it was not there.

    A subclass has the three class variables, and overrides `instance_of`.

    # Parameters

    model : `Model`
        The model.
    dataset_reader : `DatasetReader`
        The one it was trained with.

    # Raises

    `ConfigurationError`
        If the model is that of a task whose lines are others.
    """

    # A line.
    example: ClassVar[JsonDict]
    # What a line must have, as an error says it.
    rule: ClassVar[str]
    # The keys whose values are no text to the model, and stay as they are.
    verbatim: ClassVar[tuple[str, ...]] = ()
    # The forms of a line: a key that tells the form, and the other keys that a line of this form may have.
    forms: ClassVar[dict[str, tuple[str, ...]]]

    def __init__(self, model: Model, dataset_reader: DatasetReader, frozen: bool = True) -> None:
        super().__init__(model, dataset_reader, frozen)
        name = model.default_predictor
        of_model = Predictor.by_name(name) if name in Predictor.list_available() else Predictor
        # One of another package may be for any model.
        are_ours = all(kind.__module__.startswith("elmo_tasks.") for kind in (type(self), of_model))
        if are_ours and not issubclass(of_model, type(self)):
            raise ConfigurationError(
                f"a {type(self).__name__} must have a model of lines like {json.dumps(self.example)}, but that of this "
                f"archive, {type(model).__name__}, is for the predictor {name!r}: omit --predictor, or name the "
                "archive of another model"
            )

    def instance_of(self, inputs: JsonDict) -> Instance | JsonDict | None:
        """
        The instance of a line, whose keys are known to be allowed.

        # Returns

        `Union[Instance, JsonDict, None]`
            The prediction itself if the line has no words, and `None` if the line is not as `rule` says.
        """
        raise NotImplementedError

    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is not a JSON object, or has a key twice.
        """
        try:
            return json_object(line)
        except ValueError as error:
            raise ValueError(
                f"a line must be a JSON object like {json.dumps(self.example)}, but is {line.strip()!r:.100} ({error})"
                f"; {_FILES_OF_THE_TASK}"
            ) from None

    def predict_json(self, inputs: JsonDict) -> JsonDict:
        """As `predict_batch_json`, for one line."""
        return self.predict_batch_json([inputs])[0]

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        """
        The predictions of some lines; the model gets those with words as one batch.

        # Raises

        `ValueError`
            If a line is of no form, has a key that would be ignored, or a value of another type.
        """
        lines = [self._read(line) for line in inputs]
        instances = [line for line in lines if isinstance(line, Instance)]
        predictions = iter(self.predict_batch_instance(instances) if instances else [])
        return [next(predictions) if isinstance(line, Instance) else line for line in lines]

    def predict_instance(self, instance: Instance) -> JsonDict:
        """As `predict_batch_instance`, for one instance."""
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: list[Instance]) -> list[JsonDict]:
        """The predictions of some instances, whose gold is dropped: a tag that the model does not know is no error."""
        predictions: list[JsonDict] = super().predict_batch_instance(list(map(without_gold, instances)))
        return predictions

    def get_gradients(self, instances: list[Instance]) -> tuple[dict[str, Any], dict[str, Any]]:
        """
        As AllenNLP's, whose models give their loss among the predictions.

        # Raises

        `ValueError`
            If the instances have no labels.
        """
        model, readable = self._model, self._model.make_output_human_readable
        required = {name: weight.requires_grad for name, weight in model.named_parameters()}

        def with_loss(output: dict[str, Any]) -> dict[str, Any]:
            if "loss" not in output:
                raise ValueError("instances must have labels, of which gradients are computed, but have none")
            return {**readable(output), "loss": output["loss"]}

        model.make_output_human_readable = with_loss
        try:
            return super().get_gradients(instances)
        finally:
            del model.make_output_human_readable
            # AllenNLP does this too, but not after an error.
            for name, weight in model.named_parameters():
                weight.requires_grad_(required[name])

    def check_line(self, inputs: Any) -> None:
        """
        # Raises

        `ValueError`
            If a line is of no form, or has a key that would be ignored.
        `UnicodeEncodeError`
            If a text has half a pair of UTF-16, which the biLM would pass over.
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
                    f"{remedy} ({_FILES_OF_THE_TASK}): {json.dumps(inputs)[:200]}"
                )
            if key not in self.verbatim:
                json.dumps(inputs[key], ensure_ascii=False).encode()

    def broken_rule(self, inputs: Any) -> ValueError:
        """The error for a line that is not as `rule` says."""
        return ValueError(f"the input must have {self.rule} ({_FILES_OF_THE_TASK}), but is {json.dumps(inputs)[:200]}")

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        instance = self._read(json_dict)
        if not isinstance(instance, Instance):
            raise ValueError(f"the input must have a word, but has none: {json.dumps(json_dict)[:200]}")
        return instance

    def _read(self, inputs: Any) -> Instance | JsonDict:
        """The instance of a line, or its prediction if it has no words."""
        with readable_errors():
            self.check_line(inputs)
            found = self.instance_of(inputs)
            if found is None:
                raise self.broken_rule(inputs)
            return found


@contextmanager
def readable_errors() -> Iterator[None]:
    """
    # Raises

    `ValueError`
        For half a pair of UTF-16 in a text, and for a value that is nested more deeply than Python can follow.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a text must be Unicode, but has {error.object[error.start]!a}, which is half a pair of UTF-16: remove "
            "it, or write the whole pair"
        ) from None
    except RecursionError:
        raise ValueError("a line must hold texts, lists and numbers only, but is nested too deeply") from None


def are_words(value: Any) -> bool:
    """Whether a value of a line is a list of words."""
    return isinstance(value, list) and all(isinstance(word, str) for word in value)
