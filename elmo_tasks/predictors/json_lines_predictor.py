"""The base class of all predictors: AllenNLP's interface to a task, with JSON lines and batches."""

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from itertools import chain, islice
from typing import Any, Optional, TypeVar

import torch
from allennlp.common.util import JsonDict, sanitize
from allennlp.data import Batch, DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.nn.util import move_to_device

from elmo_tasks.bilm.process import use_one_thread_after_fork
from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.models.labels import labels_of
from elmo_tasks.modules.contextual.contextual_bilm import ContextualBilm
from elmo_tasks.predictors.interpretation import InterpretablePredictor, names_of_texts
from elmo_tasks.predictors.task_predictor import TaskInput, TextPart
from elmo_tasks.predictors.tokens import tokens_of
from elmo_tasks.vectors.batching import compute_by_length
from elmo_tasks.vectors.elmo import Precision

__all__ = ["BATCH_WORDS", "JsonLinesPredictor", "Stop", "predicted_together"]

BATCH_WORDS = 8192
"""
Words per batch, including padding. A batch of 32 with a line of 3,000 words would take gigabytes.
"""

# Parts of texts, and characters, that are predicted together. The memory for shared layers has room
# for this many at the original size. 256 parts would be 5% faster with the small biLM.
_PARTS_AT_ONCE = 128
_CHARACTERS_AT_ONCE = 40_000

_Item = TypeVar("_Item")
Stop = Callable[[], object] | None
"""Returns whether to stop."""


class JsonLinesPredictor(InterpretablePredictor):
    """
    Predicts texts and JSON lines, as a `TaskPredictor` describes them; a subclass overrides only
    methods of `TaskPredictor`.

    With `--use-dataset-reader`, `allennlp predict` reads the task's files instead of JSON lines,
    but not their gold labels: a copy of the reader has `reads_gold = False`.

    A line without words has an empty prediction. An `id` or `pairID` of a line is copied to its
    prediction.

    # Parameters

    keep_going : `bool`
        Whether a bad line gets `{"error": ..., "line": n}` instead of a prediction.
    language : `str`, optional
        spaCy's language code for the rules that split a text into words. `None`: the reader's
        tokenizer, or English.
    batch_words : `int`
        The number of words per batch, including padding. A batch that does not fit in a GPU's
        memory is halved.
    precision : `str`, optional
        See `TrainedTask`.
    """

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        frozen: bool = True,
        keep_going: bool = False,
        language: Optional[str] = None,
        batch_words: int = BATCH_WORDS,
        precision: Optional[Precision] = None,
    ) -> None:
        # A copy, because an archive's reader may also read data for an evaluation.
        reader = copy.copy(dataset_reader)
        reader.reads_gold = False
        super().__init__(model, reader, frozen)
        if language is not None and hasattr(reader, "_tokenizer"):
            reader._tokenizer = SpacyBlankTokenizer(language)
        if precision is not None:
            _set_precision(model, precision)
        # Also for a biLM that the predictor itself runs, such as that of `PosTagger`.
        self._precision = precision
        self._language = language or "en"
        self._keep_going = keep_going
        self._batch_words = batch_words
        self._n_lines = 0

    @property
    def labels(self) -> list[str]:
        """The labels that a result may have."""
        labels = {self.label_of(label) for label in labels_of(self._model.vocab)}
        return sorted(labels - {""})

    def results(
        self, inputs: Iterable[TaskInput], stop: Stop = None, batch_size: int | None = None
    ) -> Iterator[Any]:
        """
        The plain results of texts, which `read` has read. No more than `batch_size` texts are read
        before the result of the first one.
        """
        for batch in predicted_together(inputs, lambda task_input: task_input, batch_size):
            parts = []
            for task_input in batch:
                parts += task_input.parts
            outputs_of_parts = iter(self._outputs(parts, stop))
            for task_input in batch:
                outputs_of_text = islice(outputs_of_parts, len(task_input.parts))
                outputs = list(chain.from_iterable(outputs_of_text))
                if not outputs:
                    outputs = [copy.deepcopy(self.without_words)]
                yield self.result(outputs, *task_input.texts)

    def predict(self, *texts: str, **named: str) -> JsonDict:
        """The prediction for values of `inputs`."""
        by_name: JsonDict = dict(zip(self.inputs, texts, strict=False))
        return self.predict_json(by_name | named)

    def predict_json(self, inputs: JsonDict) -> JsonDict:
        (prediction,) = self.predict_batch_json([inputs])
        return prediction

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        """The prediction of each line. With `keep_going`, a bad line has its error instead."""
        # A string would be read as lines of one character each.
        if isinstance(inputs, str):
            inputs = [inputs]
        lines = [_as_line(content) for content in inputs]
        predictions: list[JsonDict] = [{} for _ in lines]
        numbers = []
        parts = []
        for number, line in enumerate(lines):
            try:
                (part,) = self._read_line(line).parts
            except ValueError as error:
                if not self._keep_going:
                    raise
                predictions[number] = {"error": str(error), "line": line.get("line")}
            else:
                numbers.append(number)
                parts.append(part)
        outputs_of_parts = self._outputs(parts)
        for number, part, outputs in zip(numbers, parts, outputs_of_parts, strict=True):
            predictions[number] = self.prediction(part, outputs) | _ids_in(lines[number])
        return predictions

    def load_line(self, line: str) -> JsonDict:
        """The content of a line, with its number (not counting blank lines) as `line`."""
        self._n_lines += 1
        # A byte order mark at the beginning of stdin.
        line = line.removeprefix("\ufeff")
        try:
            content = json.loads(line)
        except ValueError:
            content = line.strip()
        return {**_as_line(content), "line": self._n_lines}

    def _read_line(self, line: JsonDict) -> TaskInput:
        """An error has an example of a line, and the line's number if it is known."""
        try:
            return self.read_line(line)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, ValueError):
                message = str(error)
            else:
                content = json.dumps(line.get("", line), default=repr)[:200]
                example = self._example_line()
                message = f"expected a line like {example} (or --use-dataset-reader), got {content}"
            if "line" in line:
                message = f"{message}: line {line['line']}"
            raise ValueError(message) from error

    def _example_line(self) -> str:
        texts = next(iter(self.examples), ["..."] * len(self.inputs))
        line = dict(zip(self.inputs, texts, strict=True))
        return json.dumps(line, ensure_ascii=False)

    def _outputs(self, parts: list[TextPart], stop: Stop = None) -> list[list[JsonDict]]:
        """The finished outputs of the instances of each part."""
        instances = self.instances_of(parts)
        outputs = iter(self.predict_batch_instance(list(chain.from_iterable(instances)), stop))
        return [list(islice(outputs, len(part_instances))) for part_instances in instances]

    def predict_instance(self, instance: Instance) -> JsonDict:
        (prediction,) = self.predict_batch_instance([instance])
        return prediction

    def predict_batch_instance(
        self, instances: list[Instance], stop: Stop = None
    ) -> list[JsonDict]:
        """
        Predicts in batches of similar lengths, with a bounded number of words. Before each batch,
        `stop` is asked: see `TrainedTask`. An instance with a text without words has the prediction
        `without_words`.
        """
        # Not only in the biLM: other parts of the model may compute before it.
        use_one_thread_after_fork()
        predictions = [copy.deepcopy(self.without_words) for _ in instances]
        numbers = []
        longest_texts = []
        for number, instance in enumerate(instances):
            longest_text = _longest_text(instance)
            if longest_text is not None:
                numbers.append(number)
                longest_texts.append(longest_text)

        def outputs_of(rows: list[int]) -> list[JsonDict]:
            if stop is not None and stop():
                raise CancelledError("stopped before the last result")
            return self._forward([instances[numbers[row]] for row in rows])

        for rows, outputs in compute_by_length(
            outputs_of, longest_texts, self._batch_words, "batch_words"
        ):
            for row, output in zip(rows, outputs, strict=True):
                number = numbers[row]
                predictions[number] = self.finish(instances[number], output)
        for instance, prediction in zip(instances, predictions, strict=True):
            prediction |= _ids_in(instance["metadata"].metadata)
        return predictions

    @torch.no_grad()
    def _forward(self, instances: list[Instance]) -> list[JsonDict]:
        """
        Returns what AllenNLP's `predict_batch_instance` returns, but faster: that method walks
        through all values in Python, in `move_to_device` (even on a CPU) and in `sanitize`, which
        took 17% of the time of five tasks.
        """
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._model.vocab)
        tensors: Any = batch.as_tensor_dict()
        if self.cuda_device >= 0:
            tensors = move_to_device(tensors, self.cuda_device)
        readable = self._model.make_output_human_readable(self._model(**tensors))
        outputs: list[JsonDict] = [{} for _ in instances]
        for name, values in readable.items():
            if isinstance(values, torch.Tensor) and values.dim() == 0:
                values = values[None]
            rows = _json_of(values)
            # A value of the whole batch, such as the loss, is left out.
            if len(rows) == len(instances):
                for output, row in zip(outputs, rows, strict=True):
                    output[name] = row
        return outputs

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        """
        For interpreters, which explain one instance: a sentence's first predicate, a long
        sentence's first piece.
        """
        instances = self.instances_of(self._read_line(json_dict).parts)
        return instances[0][0]


def _set_precision(model: Model, precision: Precision) -> None:
    """Sets the precision of the biLM of a model."""
    for module in model.modules():
        if isinstance(module, ContextualBilm):
            module.bilm.precision = precision
            return
    raise ValueError(f"expected a model with a biLM for {precision}, got {type(model).__name__}")


def predicted_together(
    items: Iterable[_Item], input_of: Callable[[_Item], TaskInput], batch_size: int | None = None
) -> Iterator[list[_Item]]:
    """
    Divides items into lists that are predicted together, each of at most `batch_size` items.
    `input_of` returns the `TaskInput` of an item. A full list is yielded before the next item is
    read, which may come much later.
    """
    batch: list[_Item] = []
    filled = 0.0
    for item in items:
        texts, parts = input_of(item)
        n_parts = len(parts) or 1
        n_characters = sum(len(text) for text in texts)
        share = max(n_parts / _PARTS_AT_ONCE, n_characters / _CHARACTERS_AT_ONCE)
        if batch and filled + share > 1.0:
            yield batch
            batch = []
            filled = 0.0
        batch.append(item)
        filled += share
        if filled >= 1.0 or len(batch) == batch_size:
            yield batch
            batch = []
            filled = 0.0
    if batch:
        yield batch


def _as_line(content: Any) -> JsonDict:
    """
    A line, also from JSON that is not an object: then under an empty key, which is an error for
    `read_line`.
    """
    if isinstance(content, dict):
        return content
    return {"": content}


_JSON_TYPES = frozenset({str, float, int, bool})


def _json_of(value: Any) -> Any:
    """The same as `sanitize`."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if type(value) is list:
        if _JSON_TYPES.issuperset(map(type, value)):
            return value
        return [_json_of(element) for element in value]
    if type(value) is dict:
        return {key: _json_of(element) for key, element in value.items()}
    if type(value) in _JSON_TYPES:
        return value
    return sanitize(value)


def _longest_text(instance: Instance) -> list[Token] | None:
    """
    The words of the longest text of an instance. `None` if one of its texts has no words, or a
    document no sentence.
    """
    longest_text: list[Token] = []
    for name in names_of_texts(instance):
        if not len(instance[name]):
            return None
        tokens = tokens_of(instance[name])
        if len(tokens) > len(longest_text):
            longest_text = tokens
    return longest_text


def _ids_in(values: JsonDict) -> JsonDict:
    """The identifiers of SNLI and SQuAD, which a line or the metadata of an instance may have."""
    return {key: values[key] for key in ("id", "pairID") if values.get(key) is not None}
