"""The base class of all predictors: AllenNLP's interface to a task, with JSON lines and batches."""

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from itertools import chain, islice
from typing import Any, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from more_itertools import constrained_batches

from elmo_tasks.bilm.process import use_one_thread_after_fork
from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.predictors.interpretation import InterpretablePredictor, texts_of
from elmo_tasks.predictors.task import Task, tokens_of
from elmo_tasks.vectors.batching import compute_by_length

__all__ = ["BATCH_WORDS", "JsonLinesPredictor", "Stop"]

BATCH_WORDS = 8192
"""Words per batch, including padding. A batch of 32 with a line of 3,000 words would take gigabytes."""

# Lines of texts that are predicted together.
_LINES_AT_ONCE = 64

Stop = Callable[[], object] | None
"""Returns whether to stop."""
_Predict = Callable[[list[Instance]], list[JsonDict]]


class JsonLinesPredictor(Task, InterpretablePredictor):
    """
    Predicts JSON lines and texts, as a `Task` describes them; a subclass overrides only methods of `Task`.

    With `--use-dataset-reader`, `allennlp predict` reads the task's files instead of JSON lines, but not
    their gold labels: a copy of the reader has `reads_gold = False`.

    A line without words has an empty prediction. An `id` or `pairID` of a line is copied to its prediction.

    # Parameters

    keep_going : `bool`
        Whether a bad line gets `{"error": ..., "line": n}` instead of a prediction.
    language : `str`, optional
        spaCy's language code for the rules that split a text into words. `None`: the reader's tokenizer, or English.
    batch_words : `int`
        The number of words per batch, including padding. A batch that does not fit in a GPU's memory is halved.
    """

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        frozen: bool = True,
        keep_going: bool = False,
        language: Optional[str] = None,
        batch_words: int = BATCH_WORDS,
    ) -> None:
        # A copy, because an archive's reader may also read data for an evaluation.
        reader = copy.copy(dataset_reader)
        reader.reads_gold = False
        super().__init__(model, reader, frozen)
        if language is not None and hasattr(reader, "_tokenizer"):
            reader._tokenizer = SpacyBlankTokenizer(language)
        self._language = language or "en"
        self._keep_going = keep_going
        self._batch_words = batch_words
        self._n_lines = 0

    def predict(self, *texts: str, **named: str) -> JsonDict:
        """The prediction for values of `inputs`."""
        return self.predict_json({**dict(zip(self.inputs, texts, strict=False)), **named})

    def results(self, inputs: Iterable[tuple[tuple[str, ...], list[JsonDict]]], stop: Stop = None) -> Iterator[Any]:
        """The plain result of each input, which is its texts and its `lines`."""
        return _results(self, inputs, partial(self.predict_batch_instance, stop=stop))

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

    def predict_json(self, inputs: JsonDict) -> JsonDict:
        return self.predict_batch_json([inputs])[0]

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        lines = list(map(_as_line, [inputs] if isinstance(inputs, str) else inputs))
        return _predictions(self, lines, self.predict_batch_instance, keep_going=self._keep_going)

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: list[Instance], stop: Stop = None) -> list[JsonDict]:
        """
        Predicts in batches of similar lengths, with a bounded number of words. Before each batch, `stop` is asked:
        see `TrainedTask`. An instance with a text without words has the prediction `without_words`.
        """
        # Not only in the biLM: other parts of the model may compute before it.
        use_one_thread_after_fork()
        finished = [copy.deepcopy(self.without_words) for _ in instances]
        texts = [[instance[name] for name in texts_of(instance)] for instance in instances]
        with_words = [row for row, of_instance in enumerate(texts) if all(map(len, of_instance))]
        longest = [max(map(tokens_of, texts[row]), key=len) for row in with_words]
        predict = super().predict_batch_instance

        def predicted(batch: list[int]) -> list[JsonDict]:
            if stop is not None and stop():
                raise CancelledError("stopped before the last result")
            return predict([instances[with_words[number]] for number in batch])

        for batch, outputs in compute_by_length(predicted, longest, self._batch_words, "batch_words"):
            for row, output in zip((with_words[number] for number in batch), outputs, strict=True):
                finished[row] = self.finish(instances[row], output)
        for instance, prediction in zip(instances, finished, strict=True):
            prediction |= _ids_in(instance["metadata"].metadata)
        return finished

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        """For interpreters, which explain one instance: a sentence's first predicate, a long sentence's first piece."""
        return self.instances_of([_parsed(self, json_dict)])[0][0]


def _as_line(content: Any) -> JsonDict:
    """A line, also from JSON that is not an object: then under an empty key, and an error for `_parsed`."""
    return content if isinstance(content, dict) else {"": content}


def _parsed(task: Task, line: JsonDict) -> Any:
    """What `parse` returns. An error has an example of a line, and the line's number if it is known."""
    try:
        return task.parse(line)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        texts = next(iter(task.examples), ["..."] * len(task.inputs))
        example = json.dumps(dict(zip(task.inputs, texts, strict=True)), ensure_ascii=False)
        found = json.dumps(line.get("", line), default=repr)[:200]
        expected = f"expected a line like {example} (or --use-dataset-reader), got {found}"
        message = str(error) if isinstance(error, ValueError) else expected
        raise ValueError(f"{message}: line {line['line']}" if "line" in line else message) from error


def _predictions(task: Task, lines: list[JsonDict], predict: _Predict, *, keep_going: bool) -> list[JsonDict]:
    """The prediction of each line. With `keep_going`, a bad line has its error instead."""
    predictions: list[JsonDict] = [{} for _ in lines]
    parsed = {}
    for number, line in enumerate(lines):
        try:
            parsed[number] = _parsed(task, line)
        except ValueError as error:
            if not keep_going:
                raise
            predictions[number] = {"error": str(error), "line": line.get("line")}
    outputs = _outputs(task, list(parsed.values()), predict)
    for number, of_line in zip(parsed, outputs, strict=True):
        predictions[number] = task.joined(parsed[number], of_line) | _ids_in(lines[number])
    return predictions


def _results(task: Task, inputs: Iterable[tuple[tuple[str, ...], list[JsonDict]]], predict: _Predict) -> Iterator[Any]:
    """The plain result of each input, which is its texts and its lines."""
    for some in constrained_batches(inputs, _LINES_AT_ONCE, get_len=lambda each: len(each[1]) or 1, strict=False):
        parsed = [_parsed(task, line) for line in chain.from_iterable(lines for _, lines in some)]
        outputs = iter(_outputs(task, parsed, predict))
        for texts, lines in some:
            of_text = list(chain.from_iterable(islice(outputs, len(lines))))
            yield task.plain(of_text or [copy.deepcopy(task.without_words)], *texts)


def _outputs(task: Task, parsed: list[Any], predict: _Predict) -> list[list[JsonDict]]:
    """The finished outputs for the instances of each line."""
    instances = task.instances_of(parsed)
    outputs = iter(predict(list(chain.from_iterable(instances))))
    return [list(islice(outputs, len(of_line))) for of_line in instances]


def _ids_in(values: JsonDict) -> JsonDict:
    """The identifiers of SNLI and SQuAD, which a line or the metadata of an instance may have."""
    return {key: values[key] for key in ("id", "pairID") if values.get(key) is not None}
