"""Coreference for documents in JSON lines."""

from functools import cached_property
from itertools import chain
from typing import Any

from allennlp.common.util import JsonDict
from allennlp.data import Instance, Token
from allennlp.predictors import Predictor
from allennlp_models.coref.predictors.coref import CorefPredictor as CorefPredictorOfAllenNlp

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, places, tokens_of
from elmo_tasks.predictors.parts_of_speech import PosTagger
from elmo_tasks.text import as_words, sentences_of_words
from elmo_tasks.text.words import blank_pipeline

__all__ = ["CorefPredictor"]

_POSSESSIVES = frozenset({"my", "your", "his", "its", "our", "their"})
_AFTER_POSSESSIVES = frozenset({"ADJ", "NOUN", "NUM", "PROPN"})


@Predictor.register("elmo_coref")
class CorefPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"document": "Ann sang. She was tired."}`, which it splits into sentences and words with spaCy's
    rules, or `{"sentences": [["Ann", "sang", "."], ["She", "was", "tired", "."]]}`. Either may have a `genre`, two
    letters as in OntoNotes; lines with `sentences` may also have `speakers`, one per sentence.

    In a prediction, `document` is the list of words, as in AllenNLP; `document_name` and `part` identify a document in
    CoNLL's files. For a text, `places` has the character offsets of the mentions, in the order of `clusters`.
    """

    example = '{"document": "Ann sang. She was tired."}'

    @cached_property
    def _pipeline(self) -> Any:
        pipeline = blank_pipeline(self._language)
        pipeline.add_pipe("sentencizer")
        return pipeline

    @cached_property
    def _tagger(self) -> PosTagger:
        return PosTagger()

    def predict(self, document: str) -> JsonDict:
        return self.predict_json({"document": document})

    def predict_tokenized(self, tokenized_document: list[str]) -> JsonDict:
        return self.predict_json({"sentences": sentences_of_words(tokenized_document)})

    def coref_resolved(self, document: str) -> str:
        """The document with all mentions of each cluster replaced by the first one."""
        return self.resolved(document, self.predict(document)["clusters"])

    def resolved(self, document: str, clusters: list[list[list[int]]]) -> str:
        """`coref_resolved` for clusters that were predicted before."""
        parsed = self._pipeline(document)
        # Token numbers in spaCy's document, which also contains white space.
        numbers = [token.i for token in parsed if not token.is_space]
        sentences = [words for of in parsed.sents if (words := [token for token in of if not token.is_space])]
        for tokens, tags in zip(
            sentences, self._tagger([[token.text for token in of] for of in sentences]), strict=True
        ):
            for token, following in zip(tokens, [*tags[1:], ""], strict=True):
                # `replace_corefs` reads these tags. "her" may be an object, too.
                is_possessive = token.lower_ in _POSSESSIVES or (
                    token.lower_ == "her" and following in _AFTER_POSSESSIVES
                )
                token.tag_ = "PRP$" if is_possessive else "POS" if token.lower_ == "'s" else ""
        return self.replace_corefs(parsed, [[[numbers[i] for i in mention] for mention in of] for of in clusters])

    replace_corefs = staticmethod(CorefPredictorOfAllenNlp.replace_corefs)

    def outcome_of(self, inputs: JsonDict) -> Instance:
        if "sentences" in inputs:
            sentences = list(map(as_words, inputs["sentences"]))
        else:
            parsed = self._pipeline(inputs["document"]).sents
            sentences = [[Token(t.text, t.idx, t.idx + len(t)) for t in of if not t.is_space] for of in parsed]
            sentences = [of for of in sentences if of]
        speakers = inputs.get("speakers")
        if speakers is not None:
            speakers = [[speaker] * len(words) for speaker, words in zip(speakers, sentences, strict=True)]
        return self._dataset_reader.text_to_instance(sentences, speakers, genre=inputs.get("genre"))

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        output["document_name"] = output["document"]
        output["document"] = list(chain.from_iterable(output["sentences"]))
        tokens = tokens_of(instance["tokens"])
        if tokens and tokens[0].idx is not None:
            output["places"] = [[places(tokens, *mention) for mention in of] for of in output["clusters"]]
        return output
