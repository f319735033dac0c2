"""The base class of all predictors: what a task takes and gives, JSON lines, and batches without gold labels."""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import cached_property
from itertools import chain, islice
from typing import Any, ClassVar, Literal, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import LabelField, ListField, SequenceLabelField
from allennlp.models import Model
from allennlp.predictors import Predictor
from more_itertools import constrained_batches

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.predictors.interpretation import EmbeddedWords
from elmo_tasks.text import Word
from elmo_tasks.vectors.batching import computed

__all__ = ["BATCH_WORDS", "JsonLinesPredictor", "Stop", "as_tokens", "place_of", "span_in", "tokens_of"]

BATCH_WORDS = 8192
"""Words per batch, including padding. A batch of 32 with a line of 3,000 words would take gigabytes."""
# Lines that are predicted together.
_LINES_AT_ONCE = 64
_IDS = ("id", "pairID")

Stop = Callable[[], object] | None
"""Returns whether to stop."""
_Join = Callable[[Any, list[JsonDict]], JsonDict]


class JsonLinesPredictor(Predictor):
    """
    Describes a task: what it takes (`inputs`), and what it gives (`plain`, `about`). `TrainedTask`, the
    components for spaCy, the demo, the model cards and `python -m elmo_tasks annotate` use this description,
    so a new task needs only a predictor.

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

    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    """What the task finds, and what the plain result consists of."""
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    """The names of the texts that the task takes."""
    keys: ClassVar[dict[str, str]] = {}
    """The keys of a line for `inputs`, where they differ."""
    examples: ClassVar[Sequence[tuple[str, ...]]] = ()
    """Values of `inputs`."""
    shown_as: ClassVar[Literal["spans", "roles", "label", "answer", "chains", "json"]] = "json"
    """How the demo shows the plain result."""
    example: ClassVar[str] = '{"text": "..."}'
    """A line."""
    texts: ClassVar[tuple[str, ...]] = ("tokens",)
    """The names of the text fields of an instance, in the order in which the model embeds them."""
    without_words: ClassVar[JsonDict] = {"label": None, "probabilities": {}}
    """The prediction of a line without words."""

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
        keys = (self.keys.get(name, name) for name in self.inputs)
        return self.predict_json({**dict(zip(keys, texts, strict=False)), **named})

    def parse(self, inputs: JsonDict) -> Any:
        """What a line means, for `instances_of`. The errors of this method get the line's number."""
        texts = [inputs[name if name in inputs else self.keys.get(name, name)] for name in self.inputs]
        return [self._dataset_reader.text_to_instance(*texts)] if all(text.strip() for text in texts) else []

    def instances_of(self, parsed: list[Any]) -> list[list[Instance]]:
        """The instances of each line: by default, what `parse` returns. None: a line without words."""
        return parsed

    def joined(self, parsed: Any, outputs: list[JsonDict]) -> JsonDict:
        """The prediction of a line, from those of its instances."""
        return outputs[0] if outputs else copy.deepcopy(self.without_words)

    def brief(self, parsed: Any, outputs: list[JsonDict]) -> JsonDict:
        """What `plain` needs of `joined`, where the whole would grow with the square of a long line."""
        return self.joined(parsed, outputs)

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        """Completes the model's prediction."""
        return output

    def lines(self, *texts: str) -> list[JsonDict]:
        """The lines for one input of the task: values of `inputs`."""
        return [dict(zip(self.inputs, texts, strict=True))]

    def plain(self, predictions: list[JsonDict], *texts: str) -> Any:
        """The result for one input, from the predictions of its lines, without words, tags and other details."""
        return predictions[0]

    def results(self, inputs: Iterable[tuple[tuple[str, ...], list[JsonDict]]], stop: Stop = None) -> Iterator[Any]:
        """The plain result of each input, which is its texts and its lines. Lines of several inputs share batches."""
        for some in constrained_batches(inputs, _LINES_AT_ONCE, get_len=lambda each: len(each[1]) or 1, strict=False):
            of_some = list(chain.from_iterable(lines for _, lines in some))
            predictions = iter(self._predicted(of_some, self.brief, stop))
            for texts, lines in some:
                yield self.plain(list(islice(predictions, len(lines))), *texts)

    def load_line(self, line: str) -> JsonDict:
        """The content of a line, with its number (not counting blank lines) as `line`."""
        self._n_lines += 1
        # A byte order mark at the beginning of stdin.
        line = line.removeprefix("\ufeff")
        try:
            content = json.loads(line)
        except ValueError:
            content = line.strip()
        return {**_as_object(content), "line": self._n_lines}

    def predict_json(self, inputs: JsonDict) -> JsonDict:
        return self.predict_batch_json([inputs])[0]

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        lines = list(map(_as_object, [inputs] if isinstance(inputs, str) else inputs))
        return self._predicted(lines, self.joined)

    def _predicted(self, lines: list[JsonDict], join: _Join, stop: Stop = None) -> list[JsonDict]:
        predictions: list[JsonDict] = [{} for _ in lines]
        parsed = {}
        for number, line in enumerate(lines):
            try:
                parsed[number] = self._parsed(line)
            except ValueError as error:
                if not self._keep_going:
                    raise
                predictions[number] = {"error": str(error), "line": line.get("line")}
        instances = self.instances_of(list(parsed.values()))
        outputs = iter(self.predict_batch_instance(list(chain.from_iterable(instances)), stop))
        for number, of_line in zip(parsed, instances, strict=True):
            ids = {key: lines[number][key] for key in _IDS if key in lines[number]}
            predictions[number] = join(parsed[number], list(islice(outputs, len(of_line)))) | ids
        return predictions

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: list[Instance], stop: Stop = None) -> list[JsonDict]:
        """
        Predicts in batches of similar lengths, with a bounded number of words. Before each batch, `stop` is asked:
        see `TrainedTask`. An instance with a text without words has the prediction `without_words`.
        """
        finished = [copy.deepcopy(self.without_words) for _ in instances]
        with_words = [row for row, each in enumerate(instances) if all(len(each[name]) for name in self.texts)]
        texts = [max((tokens_of(instances[row][name]) for name in self.texts), key=len) for row in with_words]
        predict = super().predict_batch_instance

        def predicted(batch: list[int]) -> list[JsonDict]:
            if stop is not None and stop():
                raise CancelledError("stopped before the last result")
            return predict([instances[with_words[number]] for number in batch])

        for batch, outputs in computed(predicted, texts, self._batch_words, "batch_words"):
            for row, output in zip((with_words[number] for number in batch), outputs, strict=True):
                finished[row] = self.finish(instances[row], output)
        for instance, prediction in zip(instances, finished, strict=True):
            metadata = instance["metadata"].metadata
            prediction |= {key: metadata[key] for key in _IDS if metadata.get(key) is not None}
        return finished

    @cached_property
    def _embedded_words(self) -> EmbeddedWords:
        return EmbeddedWords(self._model)

    def get_gradients(self, instances: list[Instance]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The gradients of the loss with respect to the embedded words; `grad_input_1` is for the last text."""
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        return self._embedded_words.gradients(instances, self.texts, self.cuda_device)

    def get_interpretable_layer(self) -> EmbeddedWords:
        return self._embedded_words

    # Interpreters look for the positions of word pieces here, but we have the vectors of words.
    get_interpretable_text_field_embedder = get_interpretable_layer

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        """For interpreters, which explain one instance: a sentence's first predicate, a long sentence's first piece."""
        return self.instances_of([self._parsed(json_dict)])[0][0]

    def predictions_to_labeled_instances(self, instance: Instance, outputs: dict[str, Any]) -> list[Instance]:
        """The instance with the predicted label or tags."""
        if "label" in outputs:
            return [self.labeled(instance, label=LabelField(outputs["label"]))]
        return [self.labeled(instance, tags=SequenceLabelField(outputs["tags"], instance["tokens"]))]

    def labeled(self, instance: Instance, **fields: Field) -> Instance:
        """A copy of an instance with what was predicted, for the loss."""
        copied: Instance = instance.duplicate()
        for name, field in fields.items():
            copied.add_field(name, field, self._model.vocab)
        return copied

    def _parsed(self, line: JsonDict) -> Any:
        try:
            return self.parse(line)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            found = json.dumps(line.get("", line), default=repr)[:200]
            expected = f"expected a line like {self.example} (or --use-dataset-reader), got {found}"
            message = str(error) if isinstance(error, ValueError) else expected
            raise ValueError(f"{message}: line {line['line']}" if "line" in line else message) from error


def _as_object(content: Any) -> JsonDict:
    return content if isinstance(content, dict) else {"": content}


def as_tokens(words: Iterable[str | Word]) -> list[Token]:
    """AllenNLP's tokens for words, which may have places in a text."""
    return [Token(word) if isinstance(word, str) else Token(*word) for word in words]


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
