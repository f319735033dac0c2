"""The base classes of predictors for single texts, read as a whole or sentence by sentence."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance, Token
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.predictors.task_predictor import TaskInput, TextPart
from elmo_tasks.predictors.tokens import as_tokens, offsets_of, span_in
from elmo_tasks.text import Word, located_sentences, located_words, pieces

__all__ = ["SentencePredictor", "TaggingPredictor", "pieces_of"]


@Predictor.register("elmo_sentence")
class SentencePredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence": "Jordan beat Chelsea ."}`, which it tokenizes with spaCy's rules,
    or `{"words": ["Jordan", "beat", "Chelsea", "."]}`, and passes all words of a line to the model.
    """

    keys: ClassVar[dict[str, str]] = {"text": "sentence"}
    without_words: ClassVar[JsonDict] = {"words": [], "label": None, "probabilities": {}}

    def predict_tokenized(self, tokenized_sentence: list[str]) -> JsonDict:
        return self.predict_json({"words": tokenized_sentence})

    def read(self, *texts: str) -> TaskInput:
        (text,) = texts
        return self.read_words(text, located_sentences(text, self._language))

    def read_words(self, text: str, sentences: list[list[Word]]) -> TaskInput:
        """The instances of a text with known words and sentences."""
        words = list(chain.from_iterable(sentences))
        return TaskInput((text,), [self.part(as_tokens(words))])

    def read_line(self, line: JsonDict) -> TaskInput:
        if "words" in line:
            words = line["words"]
        else:
            words = located_words(self.text_in(line, "text"), self._language)
        return TaskInput((), [self.part(as_tokens(words))])

    def part(self, tokens: list[Token]) -> TextPart:
        """The instances of words that are read at once."""
        if not tokens:
            return []
        return [self._dataset_reader.text_to_instance(tokens)]


class TaggingPredictor(SentencePredictor):
    """
    The base class of predictors that read a text sentence by sentence. A sentence of more than 96
    words is read in pieces (see `elmo_tasks.text.pieces`), so the cost of a text grows with its
    length; its prediction has the first and last word of each as `pieces`.
    """

    def read_words(self, text: str, sentences: list[list[Word]]) -> TaskInput:
        return TaskInput((text,), [self.part(as_tokens(words)) for words in sentences])

    def part(self, tokens: list[Token]) -> TextPart:
        if not tokens:
            return []
        instances = []
        for piece in pieces([token.text for token in tokens]):
            piece_tokens = tokens[piece.start : piece.stop]
            instances.append(self._dataset_reader.text_to_instance(piece_tokens))
        return instances

    def label_of(self, label: str) -> str:
        """Without the prefix of a tag."""
        if label == "O":
            return ""
        if label[1:2] == "-":
            return label[2:]
        return label

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens = instance["tokens"].tokens
        for span in output.get("spans", ()):
            span |= offsets_of(tokens, span["start"], span["end"])
        return output

    def prediction(self, part: TextPart, outputs: list[JsonDict]) -> JsonDict:
        if len(outputs) < 2:
            return super().prediction(part, outputs)
        ranges = _ranges_of_pieces(outputs)
        for output, piece in zip(outputs, ranges, strict=True):
            for span in output.get("spans", ()):
                span["start"] += piece.start
                span["end"] += piece.start
        sentence = {}
        for key in outputs[0]:
            values = [output[key] for output in outputs]
            if key == "probability":
                sentence[key] = math.prod(values)
            else:
                # Words, tags, probabilities of words, and spans are lists.
                sentence[key] = list(chain.from_iterable(values))
        return sentence | pieces_of(ranges)

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (text,) = texts
        spans = []
        for span in chain.from_iterable(output["spans"] for output in outputs):
            spans.append(
                {**span_in(text, span), "label": span["label"], "probability": span["score"]}
            )
        return spans


def _ranges_of_pieces(outputs: list[JsonDict]) -> list[range]:
    """The words of each piece, counted from the beginning of the sentence."""
    ranges = []
    start = 0
    for output in outputs:
        end = start + len(output["words"])
        ranges.append(range(start, end))
        start = end
    return ranges


def pieces_of(ranges: Sequence[range]) -> JsonDict:
    """The first and the last word of each piece of a sentence, if it has several."""
    if len(ranges) < 2:
        return {}
    return {"pieces": [[piece.start, piece.stop - 1] for piece in ranges]}
