"""The predictor for coreference."""

from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance, Token
from allennlp.predictors import Predictor

from elmo_tasks.predictors.pos_tagger import PosTagger
from elmo_tasks.predictors.pronouns import LocatedMention, resolved_text
from elmo_tasks.predictors.results import Chains
from elmo_tasks.predictors.sentence_predictor import SentencePredictor
from elmo_tasks.predictors.task_predictor import TaskInput
from elmo_tasks.predictors.tokens import as_tokens, offsets_of, span_in, tokens_of
from elmo_tasks.text import Word, located_sentences, pieces, sentence_ranges

__all__ = ["CorefPredictor"]

Cluster = list[list[int]]
"""The first and the last word of each mention."""


@Predictor.register("elmo_coref")
class CorefPredictor(SentencePredictor):
    """
    Takes lines like `{"document": "Ann sang. She was tired."}`, which it splits into sentences and
    words with spaCy's rules, or
    `{"sentences": [["Ann", "sang", "."], ["She", "was", "tired", "."]]}`. Either may have a
    `genre`, two letters as in OntoNotes; lines with `sentences` may also have `speakers`: per
    sentence one, or a list of one per word.

    In a prediction, `document` is the list of words, as in AllenNLP; `document_name` and `part`
    identify a document in CoNLL's files. For a text, `places` has the character offsets of the
    mentions, in the order of `clusters`.

    A sentence of a text with more than 96 words is read in pieces, which are then the `sentences`
    of the prediction.
    """

    title = "Coreference"
    about = (
        "Which expressions in a text mean the same person or thing: `chains` of mentions (`text`, "
        "`start`, `end`), and `resolved`, the text with pronouns replaced."
    )
    examples = (
        ("Ann met her brother at the station. She was tired, and he carried her bag.",),
        (
            "The old captain told his crew to wait. He would go ashore alone, and they should keep "
            "the ship ready.",
        ),
        ("Mr. Darcy wrote a letter to Elizabeth. She read it twice before she could believe him.",),
    )
    result_type = Chains
    keys: ClassVar[dict[str, str]] = {"text": "document"}

    @cached_property
    def _tagger(self) -> PosTagger:
        return PosTagger(next(self._model.parameters()).device, self._precision)

    def predict_tokenized(self, tokenized_document: list[str]) -> JsonDict:
        sentences = []
        for sentence in sentence_ranges(tokenized_document):
            sentences.append(tokenized_document[sentence.start : sentence.stop])
        return self.predict_json({"sentences": sentences})

    def read_words(self, text: str, sentences: list[list[Word]]) -> TaskInput:
        instance = self._dataset_reader.text_to_instance(_in_pieces(sentences))
        return TaskInput((text,), [[instance]])

    def read_line(self, line: JsonDict) -> TaskInput:
        if "sentences" in line:
            sentences = [as_tokens(words) for words in line["sentences"]]
        else:
            sentences = _in_pieces(located_sentences(self.text_in(line, "text"), self._language))
        speakers = line.get("speakers")
        if speakers is not None:
            speakers = _speakers_of_words(speakers, sentences)
        genre = line.get("genre")
        instance = self._dataset_reader.text_to_instance(sentences, speakers, genre=genre)
        return TaskInput((), [[instance]])

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        output["document_name"] = output["document"]
        output["document"] = list(chain.from_iterable(output["sentences"]))
        tokens = tokens_of(instance["tokens"])
        if tokens and tokens[0].idx is not None:
            output["places"] = []
            for cluster in output["clusters"]:
                places = [offsets_of(tokens, first, last) for first, last in cluster]
                output["places"].append(places)
        return output

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: JsonDict
    ) -> list[Instance]:
        """One instance per cluster, as in AllenNLP."""
        clusters = outputs["clusters"]
        if not clusters:
            return [self._with_clusters(instance, [])]
        return [self._with_clusters(instance, [cluster]) for cluster in clusters]

    def labeled_for_each(self, instance: Instance, outputs: JsonDict) -> list[Instance]:
        """All clusters except one, as for names."""
        clusters = outputs["clusters"]
        instances = []
        for left_out in clusters:
            other_clusters = [cluster for cluster in clusters if cluster != left_out]
            instances.append(self._with_clusters(instance, other_clusters))
        return instances

    def _with_clusters(self, instance: Instance, clusters: list[Cluster]) -> Instance:
        copied = self.labeled(instance)
        gold = [[tuple(mention) for mention in cluster] for cluster in clusters]
        copied["metadata"].metadata["clusters"] = gold
        return copied

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (output,) = outputs
        (text,) = texts
        chains = []
        located = []
        for cluster, places in zip(output["clusters"], output.get("places", ()), strict=True):
            spans = [span_in(text, place) for place in places]
            chains.append(spans)
            mentions = []
            for (first, last), span in zip(cluster, spans, strict=True):
                mentions.append(LocatedMention(first, last, **span))
            located.append(mentions)

        # Not `self._tagger` itself, which would be loaded even if no word is unclear.
        def tag(sentences: list[list[str]]) -> list[list[str]]:
            return self._tagger(sentences)

        resolved = resolved_text(text, output["sentences"], located, tag)
        return {"chains": chains, "resolved": resolved}

    def coref_resolved(self, document: str) -> str:
        """
        The document with pronouns replaced by the first name or noun phrase of their chain: see
        `resolved_text`.
        """
        (result,) = self.results([self.read(document)])
        resolved: str = result["resolved"]
        return resolved


def _in_pieces(sentences: list[list[Word]]) -> list[list[Token]]:
    """Sentences in pieces, because they are padded to the longest."""
    split = []
    for words in sentences:
        for piece in pieces([word.text for word in words]):
            split.append(as_tokens(words[piece.start : piece.stop]))
    return split


def _speakers_of_words(speakers: Any, sentences: list[list[Token]]) -> list[list[str]]:
    """The speaker of each word, from a speaker, or a list of one per word, for each sentence."""
    rows = []
    for row, words in zip(speakers, sentences, strict=False):
        rows.append(row if isinstance(row, list) else [row] * len(words))
    n_speakers = [len(row) for row in rows]
    has_all_words = n_speakers == [len(words) for words in sentences]
    if len(speakers) != len(sentences) or not has_all_words:
        raise ValueError(f"expected one speaker per sentence, or one per word, got {speakers}")
    return rows
