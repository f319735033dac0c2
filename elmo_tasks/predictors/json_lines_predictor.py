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
from elmo_tasks.models.elmo_model import labels_of
from elmo_tasks.modules.contextual.contextual_bilm import ContextualBilm
from elmo_tasks.predictors.interpretation import InterpretablePredictor, texts_of
from elmo_tasks.predictors.task import Input, tokens_of
from elmo_tasks.vectors.batching import compute_by_length
from elmo_tasks.vectors.elmo import Precision

__all__ = ["BATCH_WORDS", "JsonLinesPredictor", "Stop", "at_once"]

BATCH_WORDS = 8192
"""
Words per batch, including padding. A batch of 32 with a line of 3,000 words would take gigabytes.
"""

# Parts of texts, and characters, that are predicted together. The memory for shared layers has room
# for this many at the original size. 256 parts would be 5% faster with the small biLM.
_PARTS_AT_ONCE = 128
_CHARACTERS_AT_ONCE = 40_000

Item = TypeVar("Item")
Stop = Callable[[], object] | None
"""Returns whether to stop."""


class JsonLinesPredictor(InterpretablePredictor):
    """
    Predicts texts and JSON lines, as a `Task` describes them; a subclass overrides only methods of
    `Task`.

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
            bilms = [
                module.bilm for module in model.modules() if isinstance(module, ContextualBilm)
            ]
            if not bilms:
                raise ValueError(
                    f"expected a model with a biLM for {precision}, got {type(model).__name__}"
                )
            bilms[0].precision = precision
        # Of the biLM, if the task runs it elsewhere, too.
        self._precision = precision
        self._language = language or "en"
        self._keep_going = keep_going
        self._batch_words = batch_words
        self._n_lines = 0

    @property
    def labels(self) -> list[str]:
        """The labels that a result may have."""
        return sorted({*map(self.label_of, labels_of(self._model.vocab))} - {""})

    def results(
        self, inputs: Iterable[Input], stop: Stop = None, batch_size: int | None = None
    ) -> Iterator[Any]:
        """
        The plain results of texts, which `read` has read. No more than `batch_size` texts are read
        before the result of the first one.
        """
        for some in at_once(inputs, lambda each: each, batch_size):
            outputs = iter(
                self._outputs(list(chain.from_iterable(each.parts for each in some)), stop)
            )
            for texts, parts in some:
                of_texts = list(chain.from_iterable(islice(outputs, len(parts))))
                yield self.result(of_texts or [copy.deepcopy(self.without_words)], *texts)

    def predict(self, *texts: str, **named: str) -> JsonDict:
        """The prediction for values of `inputs`."""
        return self.predict_json({**dict(zip(self.inputs, texts, strict=False)), **named})

    def predict_json(self, inputs: JsonDict) -> JsonDict:
        return self.predict_batch_json([inputs])[0]

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        """The prediction of each line. With `keep_going`, a bad line has its error instead."""
        lines = list(map(_as_line, [inputs] if isinstance(inputs, str) else inputs))
        predictions: list[JsonDict] = [{} for _ in lines]
        parts = {}
        for number, line in enumerate(lines):
            try:
                (parts[number],) = self._read_line(line).parts
            except ValueError as error:
                if not self._keep_going:
                    raise
                predictions[number] = {"error": str(error), "line": line.get("line")}
        for (number, part), outputs in zip(
            parts.items(), self._outputs(list(parts.values())), strict=True
        ):
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

    def _read_line(self, line: JsonDict) -> Input:
        """An error has an example of a line, and the line's number if it is known."""
        try:
            return self.read_line(line)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            texts = next(iter(self.examples), ["..."] * len(self.inputs))
            example = json.dumps(dict(zip(self.inputs, texts, strict=True)), ensure_ascii=False)
            found = json.dumps(line.get("", line), default=repr)[:200]
            expected = f"expected a line like {example} (or --use-dataset-reader), got {found}"
            message = str(error) if isinstance(error, ValueError) else expected
            raise ValueError(
                f"{message}: line {line['line']}" if "line" in line else message
            ) from error

    def _outputs(self, parts: list[Any], stop: Stop = None) -> list[list[JsonDict]]:
        """The finished outputs of the instances of each part."""
        instances = self.instances_of(parts)
        outputs = iter(self.predict_batch_instance(list(chain.from_iterable(instances)), stop))
        return [list(islice(outputs, len(of_part))) for of_part in instances]

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

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

        def outputs_of(rows: list[int]) -> list[JsonDict]:
            if stop is not None and stop():
                raise CancelledError("stopped before the last result")
            return self._forward([with_words[row] for row in rows])

        longest = [_longest_text(instance) for instance in instances]
        finished = [copy.deepcopy(self.without_words) for _ in instances]
        numbers = [number for number, words in enumerate(longest) if words is not None]
        with_words = [instances[number] for number in numbers]
        words = [words for words in longest if words is not None]
        for rows, outputs in compute_by_length(outputs_of, words, self._batch_words, "batch_words"):
            for row, output in zip(rows, outputs, strict=True):
                finished[numbers[row]] = self.finish(with_words[row], output)
        for instance, prediction in zip(instances, finished, strict=True):
            prediction |= _ids_in(instance["metadata"].metadata)
        return finished

    @torch.no_grad()
    def _forward(self, instances: list[Instance]) -> list[JsonDict]:
        """
        What AllenNLP's `predict_batch_instance` returns. It walks through everything in Python,
        with `move_to_device` also on a CPU, and with `sanitize`, which took 17% of the time of five
        tasks.
        """
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._model.vocab)
        tensors: Any = batch.as_tensor_dict()
        if self.cuda_device >= 0:
            tensors = move_to_device(tensors, self.cuda_device)
        outputs: list[JsonDict] = [{} for _ in instances]
        for name, values in self._model.make_output_human_readable(self._model(**tensors)).items():
            rows = _json_of(
                values[None] if isinstance(values, torch.Tensor) and values.dim() == 0 else values
            )
            # Not a loss, or another value of the whole batch.
            if len(rows) == len(instances):
                for output, row in zip(outputs, rows, strict=True):
                    output[name] = row
        return outputs

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        """
        For interpreters, which explain one instance: a sentence's first predicate, a long
        sentence's first piece.
        """
        return self.instances_of(self._read_line(json_dict).parts)[0][0]


def at_once(
    items: Iterable[Item], read_of: Callable[[Item], Input], batch_size: int | None = None
) -> Iterator[list[Item]]:
    """
    The items that are predicted together, at most `batch_size`; `read_of` gives what a task has
    read of one. A full batch is yielded before the next item is read, which may come much later.
    """
    batch: list[Item] = []
    filled = 0.0
    for item in items:
        texts, parts = read_of(item)
        n_characters = sum(map(len, texts))
        share = max((len(parts) or 1) / _PARTS_AT_ONCE, n_characters / _CHARACTERS_AT_ONCE)
        if batch and filled + share > 1.0:
            yield batch
            batch, filled = [], 0.0
        batch.append(item)
        filled += share
        if filled >= 1.0 or len(batch) == batch_size:
            yield batch
            batch, filled = [], 0.0
    if batch:
        yield batch


def _as_line(content: Any) -> JsonDict:
    """
    A line, also from JSON that is not an object: then under an empty key, which is an error for
    `read_line`.
    """
    return content if isinstance(content, dict) else {"": content}


_JSON_TYPES = frozenset({str, float, int, bool})


def _json_of(value: Any) -> Any:
    """The same as `sanitize`."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if type(value) is list:
        return value if _JSON_TYPES.issuperset(map(type, value)) else list(map(_json_of, value))
    if type(value) is dict:
        return {key: _json_of(each) for key, each in value.items()}
    return value if type(value) in _JSON_TYPES else sanitize(value)


def _longest_text(instance: Instance) -> list[Token] | None:
    """
    The words of the longest text of an instance. `None`: a text has no words (a document has a
    sentence).
    """
    texts = [instance[name] for name in texts_of(instance)]
    return max(map(tokens_of, texts), key=len) if all(map(len, texts)) else None


def _ids_in(values: JsonDict) -> JsonDict:
    """The identifiers of SNLI and SQuAD, which a line or the metadata of an instance may have."""
    return {key: values[key] for key in ("id", "pairID") if values.get(key) is not None}
