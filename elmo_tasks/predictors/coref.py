"""Coreference for documents in JSON lines."""

from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import as_tokens, place_of, span_in, tokens_of
from elmo_tasks.predictors.parts_of_speech import PosTagger
from elmo_tasks.predictors.resolved import resolved_text
from elmo_tasks.predictors.sentence import SentencePredictor
from elmo_tasks.text import Word, as_words, located_sentences, pieces, sentences_of_words

__all__ = ["CorefPredictor"]


@Predictor.register("elmo_coref")
class CorefPredictor(SentencePredictor):
    """
    Takes lines like `{"document": "Ann sang. She was tired."}`, which it splits into sentences and words with
    spaCy's rules, or `{"sentences": [["Ann", "sang", "."], ["She", "was", "tired", "."]]}`. Either may have a
    `genre`, two letters as in OntoNotes; lines with `sentences` may also have `speakers`: per sentence one,
    or a list of one per word.

    In a prediction, `document` is the list of words, as in AllenNLP; `document_name` and `part` identify a document in
    CoNLL's files. For a text, `places` has the character offsets of the mentions, in the order of `clusters`.

    A sentence of a text with more than 96 words is read in pieces, which are then the `sentences` of the prediction.
    """

    title = "Coreference"
    about = (
        "Which expressions in a text mean the same person or thing: `chains` of mentions (`text`, `start`, `end`), and "
        "`resolved`, the text with pronouns replaced."
    )
    examples = (
        ("Ann met her brother at the station. She was tired, and he carried her bag.",),
        ("The old captain told his crew to wait. He would go ashore alone, and they should keep the ship ready.",),
        ("Mr. Darcy wrote a letter to Elizabeth. She read it twice before she could believe him.",),
    )
    shown_as = "chains"
    example = '{"document": "Ann sang. She was tired."}'
    keys: ClassVar[dict[str, str]] = {"text": "document"}

    @cached_property
    def _tagger(self) -> PosTagger:
        return PosTagger()

    def predict_tokenized(self, tokenized_document: list[str]) -> JsonDict:
        return self.predict_json({"sentences": sentences_of_words(tokenized_document)})

    def lines_of(self, sentences: list[list[Word]]) -> list[JsonDict]:
        """The line of a text whose words and sentences are known."""
        return [{"located": sentences}]

    def parse(self, inputs: JsonDict) -> Any:
        sentences: list[Any] = []
        if "sentences" in inputs:
            sentences = list(map(as_words, inputs["sentences"]))
        else:
            known = inputs.get("located")
            for words in located_sentences(inputs["document"], self._language) if known is None else known:
                # Sentences are padded to the longest.
                sentences += [words[part.start : part.stop] for part in pieces([word.text for word in words])]
        speakers = inputs.get("speakers")
        if speakers is not None:
            pairs = zip(speakers, sentences, strict=False)
            rows = [each if isinstance(each, list) else [each] * len(words) for each, words in pairs]
            if len(speakers) != len(sentences) or list(map(len, rows)) != list(map(len, sentences)):
                raise ValueError(f"expected one speaker per sentence, or one per word, got {speakers}")
            speakers = rows
        tokens = list(map(as_tokens, sentences))
        return [self._dataset_reader.text_to_instance(tokens, speakers, genre=inputs.get("genre"))]

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        output["document_name"] = output["document"]
        output["document"] = list(chain.from_iterable(output["sentences"]))
        tokens = tokens_of(instance["tokens"])
        if tokens and tokens[0].idx is not None:
            output["places"] = [[place_of(tokens, *mention) for mention in each] for each in output["clusters"]]
        return output

    def predictions_to_labeled_instances(self, instance: Instance, outputs: dict[str, Any]) -> list[Instance]:
        """One instance per cluster, as in AllenNLP."""
        instances = []
        for clusters in [[cluster] for cluster in outputs["clusters"]] or [[]]:
            copied = self.labeled(instance)
            copied["metadata"].metadata["clusters"] = [[tuple(mention) for mention in each] for each in clusters]
            instances.append(copied)
        return instances

    def plain(self, predictions: list[JsonDict], *texts: str) -> Any:
        ((prediction,), (text,)) = predictions, texts
        chains = [[span_in(text, place) for place in each] for each in prediction.get("places", ())]
        mentions = [list(zip(*each, strict=True)) for each in zip(prediction["clusters"], chains, strict=True)]
        resolved = resolved_text(text, prediction["sentences"], mentions, lambda sentences: self._tagger(sentences))
        return {"chains": chains, "resolved": resolved}

    def coref_resolved(self, document: str) -> str:
        """The document with pronouns replaced by the first name or noun phrase of their chain: see `resolved_text`."""
        resolved: str = next(self.results([((document,), self.lines(document))]))["resolved"]
        return resolved
