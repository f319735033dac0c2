"""
The predictors for models of single sentences: named entities, parts of speech, sentiment, and a
user's own.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance, Token
from allennlp.data.fields import SequenceLabelField
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.predictors.results import Names, Stars, TaggedWords
from elmo_tasks.predictors.task import Input, as_tokens, place_of, span_in
from elmo_tasks.text import Word, located_sentences, located_words, pieces
from elmo_tasks.text.tags import spans_to_bioul, tags_to_spans

__all__ = ["NerPredictor", "PosPredictor", "SentencePredictor", "SstPredictor", "TaggingPredictor"]


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

    def read(self, *texts: str) -> Input:
        (text,) = texts
        return self.read_words(text, located_sentences(text, self._language))

    def read_words(self, text: str, sentences: list[list[Word]]) -> Input:
        """The instances of a text with known words and sentences."""
        return Input((text,), [self.part(as_tokens(list(chain.from_iterable(sentences))))])

    def read_line(self, line: JsonDict) -> Input:
        words = (
            line["words"]
            if "words" in line
            else located_words(self.text_in(line, "text"), self._language)
        )
        return Input((), [self.part(as_tokens(words))])

    def part(self, tokens: list[Token]) -> Any:
        """The instances of words that are read at once."""
        return [self._dataset_reader.text_to_instance(tokens)] if tokens else []


class TaggingPredictor(SentencePredictor):
    """
    The base class of predictors that read a text sentence by sentence. A sentence of more than 96
    words is read in pieces (see `elmo_tasks.text.pieces`), so the cost of a text grows with its
    length; its prediction has the first and last word of each as `pieces`.
    """

    def read_words(self, text: str, sentences: list[list[Word]]) -> Input:
        return Input((text,), [self.part(as_tokens(words)) for words in sentences])

    def part(self, tokens: list[Token]) -> Any:
        parts = pieces([token.text for token in tokens]) if tokens else []
        return [
            self._dataset_reader.text_to_instance(tokens[part.start : part.stop]) for part in parts
        ]

    def label_of(self, label: str) -> str:
        """Without the prefix of a tag."""
        return "" if label == "O" else label[2:] if label[1:2] == "-" else label

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        for span in output.get("spans", ()):
            span |= place_of(instance["tokens"].tokens, span["start"], span["end"])
        return output

    def prediction(self, part: Any, outputs: list[JsonDict]) -> JsonDict:
        if len(outputs) < 2:
            return super().prediction(part, outputs)
        parts: list[range] = []
        for output in outputs:
            start = parts[-1].stop if parts else 0
            parts.append(range(start, start + len(output["words"])))
            for span in output.get("spans", ()):
                span["start"] += start
                span["end"] += start
        values = {key: [output[key] for output in outputs] for key in outputs[0]}
        # Words, tags, probabilities of words, and spans are lists; the probability of a sentence is
        # a number.
        whole = {
            key: math.prod(of_parts)
            if key == "probability"
            else list(chain.from_iterable(of_parts))
            for key, of_parts in values.items()
        }
        return whole | pieces_of(parts)

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        spans = chain.from_iterable(output["spans"] for output in outputs)
        return [
            {**span_in(texts[0], span), "label": span["label"], "probability": span["score"]}
            for span in spans
        ]


def pieces_of(parts: Sequence[range]) -> JsonDict:
    """The first and the last word of each piece of a sentence, if it has several."""
    return {"pieces": [[part.start, part.stop - 1] for part in parts]} if len(parts) > 1 else {}


@Predictor.register("elmo_ner")
class NerPredictor(TaggingPredictor):
    """
    Named entities, for lines as in `SentencePredictor`. The spans of a `sentence` have `start_char`
    and `end_char`.
    """

    title = "Named entities"
    about = "Names in a text: a list of entities, each with `text`, `start`, `end`, `label` and `probability`."
    examples = (
        ("Angela Merkel met Tim Cook of Apple in Berlin.",),
        ("Could you send the invoice to Paul Novak at Northwind Traders in Boston before Friday?",),
        ("The Red Cross was founded in Geneva by Henry Dunant in 1863.",),
    )
    result_type = Names
    without_words: ClassVar[JsonDict] = {"words": [], "tags": [], "spans": [], "probability": 1.0}

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: dict[str, Any]
    ) -> list[Instance]:
        """
        One instance per entity, as in AllenNLP. A sentence without entities is one instance with
        its tags.
        """
        tags = outputs["tags"]
        rows = [spans_to_bioul([span], len(tags)) for span in tags_to_spans(tags)] or [tags]
        return [
            self.labeled(instance, tags=SequenceLabelField(row, instance["tokens"])) for row in rows
        ]

    def labeled_for_each(self, instance: Instance, outputs: JsonDict) -> list[Instance]:
        """
        All names as predicted except one: then the loss is close to the log odds of this one. With
        only the one, as AllenNLP labels instances for `InputReduction`, most of the loss is about
        the others.
        """
        spans = tags_to_spans(outputs["tags"])
        rows = [
            spans_to_bioul([each for each in spans if each != span], len(outputs["tags"]))
            for span in spans
        ]
        return [
            self.labeled(instance, tags=SequenceLabelField(row, instance["tokens"])) for row in rows
        ]


@Predictor.register("elmo_pos")
class PosPredictor(TaggingPredictor):
    """Parts of speech, for lines as in `SentencePredictor`."""

    title = "Parts of speech"
    about = (
        "Parts of speech: a list of words with `text`, `start`, `end`, `label` and `probability`. A model of both "
        "columns of CoNLL-U, such as the included one, also gives `xpos`; its `label` is the universal tag."
    )
    examples = (
        ("They play on Saturdays.",),
        ("The play was a great success.",),
        ("Please book a table for two.",),
    )
    result_type = TaggedWords
    without_words: ClassVar[JsonDict] = {"words": [], "tags": [], "probabilities": []}

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens = instance["tokens"].tokens
        places = [place_of(tokens, number, number) for number in range(len(tokens))]
        return output | ({"places": places} if all(places) else {})

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        words: list[JsonDict] = []
        for output in outputs:
            rows = zip(
                output.get("places", ()), output["tags"], output["probabilities"], strict=True
            )
            for place, tag, p in rows:
                labels = dict(zip(("label", "xpos"), self._columns_of(tag), strict=False))
                words.append({**span_in(texts[0], place), **labels, "probability": p})
        return words

    def label_of(self, label: str) -> str:
        return self._columns_of(label)[0]

    def _columns_of(self, tag: str) -> list[str]:
        # Of a model for one column, a tag may itself contain a "|".
        return tag.split("|", len(getattr(self._dataset_reader, "columns", ("upos",))) - 1)


@Predictor.register("elmo_sst")
class SstPredictor(SentencePredictor):
    """Sentiment, for lines as in `SentencePredictor`. A text is read as one sentence."""

    title = "Sentiment"
    about = "How positive a text is: `stars`, from 1 to 5, and the `probabilities` of each number of stars."
    examples = (
        ("A warm and funny film with a wonderful cast.",),
        ("Long, loud and very dull.",),
        ("The story is thin, but the songs are a delight.",),
    )
    result_type = Stars

    def label_of(self, label: str) -> str:
        # The labels of the treebank are 0, very negative, to 4.
        return str(int(label) + 1)

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        probabilities = {
            int(self.label_of(label)): share for label, share in super().result(outputs).items()
        }
        stars = max(probabilities, key=lambda number: probabilities[number], default=None)
        return {"stars": stars, "probabilities": probabilities}
