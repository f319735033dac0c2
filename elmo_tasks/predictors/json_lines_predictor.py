"""The base class of all predictors: JSON lines, bounded batches, and no gold labels."""

import copy
import json
import unicodedata
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import ListField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.text import in_nfc

__all__ = ["JsonLinesPredictor", "places", "tokens_of"]

# Words per batch, including padding. A batch of 32 with a line of 3,000 words would take gigabytes.
_MAX_WORDS = 8192
_IDS = ("id", "pairID")


class JsonLinesPredictor(Predictor):
    """
    With `--use-dataset-reader`, `allennlp predict` reads the task's files instead of JSON lines, but not their gold
    labels: a copy of the reader has `reads_gold = False`.

    A line without words has an empty prediction. An `id` or `pairID` of a line is copied to its prediction.

    # Parameters

    keep_going : `bool`
        Whether a bad line gets `{"error": ..., "line": n}` instead of a prediction.
    language : `str`, optional
        spaCy's language code for the rules that split a text into words. `None`: the reader's tokenizer, or English.
    """

    example: str
    # The names of the text fields.
    texts: tuple[str, ...] = ("tokens",)

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        frozen: bool = True,
        keep_going: bool = False,
        language: Optional[str] = None,
    ) -> None:
        # A copy, because an archive's reader may also read data for an evaluation.
        reader = copy.copy(dataset_reader)
        reader.reads_gold = False
        super().__init__(model, reader, frozen)
        if language is not None and hasattr(reader, "_tokenizer"):
            reader._tokenizer = SpacyBlankTokenizer(language)
        self._language = language or "en"
        self._keep_going = keep_going
        self._n_lines = 0

    @abstractmethod
    def outcome_of(self, inputs: JsonDict) -> Instance | JsonDict:
        """The instance of a line, or its prediction if it has no words."""

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        """Completes the model's prediction."""
        return output

    def load_line(self, line: str) -> JsonDict:
        """The content of a line, with its number (not counting blank lines) as `line`."""
        self._n_lines += 1
        try:
            content = json.loads(line)
        except ValueError:
            content = line.strip()
        return {**_as_object(content), "line": self._n_lines}

    def predict_json(self, inputs: JsonDict) -> JsonDict:
        return self.predict_batch_json([inputs])[0]

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        outcomes = [self.read(line) for line in ([inputs] if isinstance(inputs, str) else inputs)]
        instances = [outcome for outcome in outcomes if isinstance(outcome, Instance)]
        predictions = iter(self.predict_batch_instance(instances))
        return [next(predictions) if isinstance(outcome, Instance) else outcome for outcome in outcomes]

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: list[Instance]) -> list[JsonDict]:
        """Predicts in batches with a bounded number of words."""
        finished = []
        for batch in self._batches(instances):
            for instance, output in zip(batch, super().predict_batch_instance(batch), strict=True):
                metadata = instance["metadata"].metadata
                ids = {key: metadata[key] for key in _IDS if metadata.get(key) is not None}
                finished.append(self.finish(instance, output) | ids)
        return finished

    def _batches(self, instances: Sequence[Instance]) -> Iterator[list[Instance]]:
        batch: list[Instance] = []
        longest = 0
        for instance in instances:
            length = max(len(tokens_of(instance[name])) for name in self.texts)
            longest = max(longest, length)
            if batch and longest * (len(batch) + 1) > _MAX_WORDS:
                yield batch
                batch, longest = [], length
            batch.append(instance)
        if batch:
            yield batch

    def read(self, inputs: JsonDict) -> Any:
        """The outcome of a line, or `{"error": ..., "line": ...}`."""
        inputs = _as_object(inputs)
        try:
            outcome = self.outcome_of(in_nfc(inputs))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            found = json.dumps(inputs.get("", inputs), default=repr)[:200]
            expected = f"expected a line like {self.example} (or --use-dataset-reader), got {found}"
            message = str(error) if isinstance(error, ValueError) else expected
            if self._keep_going:
                return {"error": message, "line": inputs.get("line")}
            raise ValueError(f"{message}: line {inputs['line']}" if "line" in inputs else message) from error
        ids = {key: inputs[key] for key in _IDS if key in inputs}
        text = next((inputs[key] for key in ("sentence", "document", "passage", "context") if key in inputs), "")
        if text != in_nfc(text) and self.texts[-1] in outcome:
            _relocate(tokens_of(outcome[self.texts[-1]]), text)
        if not isinstance(outcome, Instance):
            return outcome | ids
        outcome["metadata"].metadata.update(ids)
        return outcome


def _as_object(content: Any) -> JsonDict:
    return content if isinstance(content, dict) else {"": content}


def tokens_of(text: Any) -> list[Token]:
    """The tokens of a text, or of all sentences of a document."""
    return [token for part in text for token in tokens_of(part)] if isinstance(text, ListField) else list(text)


def places(tokens: Sequence[Token], start: int, end: int) -> dict[str, int]:
    """The offsets of a span's first character and of the character after its last, if the words come from a text."""
    return {} if tokens[start].idx is None else {"start_char": tokens[start].idx, "end_char": tokens[end].idx_end}


def _relocate(tokens: Sequence[Token], text: str) -> None:
    """Converts the offsets of tokens from the NFC form of a text to the text itself."""
    lengths = list(_nfc_lengths(text))
    for token in tokens:
        token.idx, token.idx_end = (bisect_right(lengths, place) - 1 for place in (token.idx, token.idx_end))


def _nfc_lengths(text: str) -> Iterator[int]:
    """The length in NFC of the first 0, 1, 2, ... characters of a text."""
    # `part` is the end of the text that the next character may combine with.
    part, before = "", 0
    yield 0
    for character in text:
        if not unicodedata.combining(character) and in_nfc(part + character) == in_nfc(part) + in_nfc(character):
            part, before = "", before + len(in_nfc(part))
        part += character
        yield before + len(in_nfc(part))
