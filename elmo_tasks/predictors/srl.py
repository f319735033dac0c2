"""Semantic roles for sentences in JSON lines, and a part-of-speech tagger that finds their verbs."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Optional

import numpy as np
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import places
from elmo_tasks.predictors.sentence import SentencePredictor
from elmo_tasks.shipped import PRETRAINED
from elmo_tasks.tags import tags_to_spans
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["PosTagger", "SrlPredictor", "VerbFinder"]


@Predictor.register("elmo_srl")
class SrlPredictor(SentencePredictor):
    """
    Takes lines like `{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}`, with the positions of the
    predicates, counted from 0, or `{"sentence": "Anna eats an apple."}`. `VerbFinder` finds predicates that are not
    given. A prediction has AllenNLP's form, `{"words": [...], "verbs": [{"verb": "eats", "description": "[ARG0: Anna]
    [V: eats] ...", "tags": [...]}]}`, plus `spans` with the positions of the arguments. With `--use-dataset-reader`,
    there is one line per predicate.

    # Parameters

    spacy_model : `str`, optional
        See `VerbFinder`.
    kwargs
        See `JsonLinesPredictor`.
    """

    example = '{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}'

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, spacy_model: Optional[str] = None, **kwargs: Any
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._find_verbs = VerbFinder(spacy_model)

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        outcomes = [self.read(line) for line in ([inputs] if isinstance(inputs, str) else inputs)]
        sentences = [outcome for outcome in outcomes if "error" not in outcome]
        self._add_predicates(sentences)
        instances = [self._instance(sentence, i) for sentence in sentences for i in sentence["predicates"]]
        predictions = iter(self.predict_batch_instance(instances))
        for sentence in sentences:
            verbs = [next(predictions) for _ in sentence.pop("predicates")]
            sentence["words"] = [token.text for token in sentence.pop("tokens")]
            sentence["verbs"] = [{key: verb[key] for key in verb if key != "words"} for verb in verbs]
        return outcomes

    def outcome_of(self, inputs: JsonDict) -> JsonDict:
        """The `tokens` of a line, and its `predicates` if they are given."""
        tokens, predicates = self.tokens(inputs), inputs.get("predicates")
        # -1 would be the last word.
        if not all(0 <= predicate < len(tokens) for predicate in predicates or ()):
            raise ValueError(f"expected predicates from 0 to {len(tokens) - 1}, got {predicates}")
        return {"tokens": tokens, "predicates": predicates}

    def _add_predicates(self, sentences: list[JsonDict]) -> None:
        unknown = [sentence for sentence in sentences if sentence["predicates"] is None]
        found = self._find_verbs([[token.text for token in sentence["tokens"]] for sentence in unknown])
        for sentence, predicates in zip(unknown, found, strict=True):
            sentence["predicates"] = predicates

    def _instance(self, sentence: JsonDict, predicate: int) -> Instance:
        tokens = [Token(token.text, token.idx, token.idx_end) for token in sentence["tokens"]]
        tokens[predicate].tag_ = "V"
        return self._dataset_reader.text_to_instance(tokens, _indicator(tokens))

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens = instance["tokens"].tokens
        output["spans"] = [
            {"label": label, "start": start, "end": end, **places(tokens, start, end)}
            for label, start, end in tags_to_spans(output["tags"])
        ]
        return output


def _indicator(tokens: Sequence[Token]) -> list[int]:
    return [int(token.tag_ == "V") for token in tokens]


class PosTagger:
    """
    Predicts the universal parts of speech of English words with a linear classifier on one layer of the biLM
    `small-open` (section 5.3 of the paper).
    """

    def __init__(self) -> None:
        with np.load(PRETRAINED / "pos-open" / "tagger.npz") as arrays:
            self._weight, self._bias = arrays["weight"], arrays["bias"]
            self._tags: list[str] = arrays["tags"].tolist()
            self._layer = int(arrays["layer"])
        self._elmo = Elmo.from_pretrained("small-open")

    def __call__(self, sentences: list[list[str]]) -> list[list[str]]:
        """A tag for each word: `NOUN`, `VERB`, `AUX` and so on."""
        # Shape of each: (n_words, dim)
        vectors = self._elmo.embed(sentences, layers=self._layer, progress=False)
        # Shape of each: (n_words, n_tags)
        scores = [of_words @ self._weight.T + self._bias for of_words in vectors]
        return [[self._tags[index] for index in of_words.argmax(-1)] for of_words in scores]


class VerbFinder:
    """
    Finds verbs and auxiliaries, as AllenNLP's predictor does.

    # Parameters

    spacy_model : `str`, optional
        A spaCy model with a tagger, for other languages: an installed package or a folder. `None`: `PosTagger`.
    """

    def __init__(self, spacy_model: str | None = None) -> None:
        self._spacy_model = spacy_model

    def __call__(self, sentences: list[list[str]]) -> list[list[int]]:
        """The positions of the verbs in each sentence, counted from 0."""
        # The tagger is loaded only if it is needed.
        tags = self._tagger(sentences) if any(sentences) else sentences
        return [[i for i, tag in enumerate(of_words) if tag in ("VERB", "AUX")] for of_words in tags]

    @cached_property
    def _tagger(self) -> Callable[[list[list[str]]], list[list[str]]]:
        if self._spacy_model is None:
            return PosTagger()
        import spacy
        from spacy.tokens import Doc

        model = spacy.load(self._spacy_model, exclude=["ner", "parser"])
        return lambda sentences: [
            [token.pos_ for token in document]
            for document in model.pipe(Doc(model.vocab, words=words) for words in sentences)
        ]
