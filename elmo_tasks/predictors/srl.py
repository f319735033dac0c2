"""Semantic roles of sentences in JSON lines."""

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Optional

from allennlp.common.util import JsonDict, sanitize
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, are_words, readable_errors
from elmo_tasks.predictors.verb_finder import VerbFinder

__all__ = ["SrlPredictor"]


@Predictor.register("elmo_srl")
class SrlPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}`, with the places of the predicates,
    counted from 0, or `{"sentence": "Anna eats an apple."}`, which it tokenizes with spaCy's rules and whose verbs it
    finds with `VerbFinder`, as for words without predicates. A prediction has the form of AllenNLP's predictor:

        {"words": [...], "verbs": [{"verb": "eats", "description": "[ARG0: Anna] [V: eats] ...", "tags": [...]}]}

    A sentence without words has no verbs. With `--use-dataset-reader`, `allennlp predict` reads CoNLL-2012's files
    instead, and writes one line for each predicate.

    Registered as a `Predictor` with name "elmo_srl".

    # Parameters

    model : `Model`
        The labeler.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    language : `str`
        The language whose tokenization rules are used, as spaCy's code.
    spacy_model : `str`, optional
        A model of spaCy, installed or a folder, that finds the verbs. `None`: `en_core_web_sm` if it is installed, and
        otherwise the tagger that ships, `PosTagger`.
    pos_model : `str`, optional
        An archive of a tagger for parts of speech that finds them instead of spaCy's: see `VerbFinder`.
    """

    example: ClassVar[JsonDict] = {"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}
    rule: ClassVar[str] = (
        'the key "sentence" with a text, or "words" with a list of words and "predicates" with a list of their places'
    )
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"sentence": (), "words": ("predicates",)}

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        language: str = "en",
        spacy_model: Optional[str] = None,
        pos_model: Optional[str] = None,
    ) -> None:
        super().__init__(model, dataset_reader)
        self._tokenizer = SpacyBlankTokenizer(language)
        self._find_verbs = VerbFinder(spacy_model, pos_model)

    def predict(self, sentence: str) -> JsonDict:
        """The arguments of all verbs of a sentence."""
        return self.predict_json({"sentence": sentence})

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        sentences = [self._words_and_predicates(line) for line in inputs]
        # A sentence has an instance for each predicate; the model gets as many of them at once as there are lines.
        instances = [self._instance(words, predicate) for words, predicates in sentences for predicate in predicates]
        outputs: list[dict[str, Any]] = []
        for start in range(0, len(instances), max(len(inputs), 1)):
            outputs += self._model.forward_on_instances(instances[start : start + len(inputs)])
        of_predicates = iter(outputs)
        results = []
        for words, predicates in sentences:
            verbs = [next(of_predicates) for _ in predicates]
            verbs = [{key: verb[key] for key in ("verb", "description", "tags")} for verb in verbs]
            results.append(sanitize({"words": words, "verbs": verbs}))
        return results

    def instance_of(self, inputs: JsonDict) -> Instance:
        """
        That of a line with one predicate, as AllenNLP's interpreters take one.

        # Raises

        `ValueError`
            If it has none or several.
        """
        words, predicates = self._words_and_predicates(inputs)
        if len(predicates) != 1:
            raise ValueError(
                f'an instance must have one predicate, but the line has {len(predicates)}: give one as "predicates": '
                f"{json.dumps(inputs)[:200]}"
            )
        return self._instance(words, predicates[0])

    def _instance(self, words: list[str], predicate: int) -> Instance:
        indicator = [int(index == predicate) for index in range(len(words))]
        instance = self._dataset_reader.text_to_instance(words, indicator)
        self._dataset_reader.apply_token_indexers(instance)
        return instance

    @readable_errors()
    def _words_and_predicates(self, inputs: JsonDict) -> tuple[list[str], Sequence[int]]:
        self.check_line(inputs)
        sentence, words, predicates = (inputs.get(key) for key in ("sentence", "words", "predicates"))
        if isinstance(sentence, str):
            words = [token.text for token in self._tokenizer.tokenize(sentence)]
        elif not are_words(words):
            raise self.broken_rule(inputs)
        if predicates is None:
            return words, self._find_verbs(words)
        if not isinstance(predicates, list) or not all(type(index) is int for index in predicates):
            raise self.broken_rule(inputs)
        _check_predicates(predicates, words)
        return words, predicates


def _check_predicates(predicates: list[int], words: list[str]) -> None:
    for index in predicates:
        if not 0 <= index < len(words):
            raise ValueError(
                f"predicates must be places of words, counted from 0 and below {len(words)}, the number of words, but "
                f"one is {index}: {json.dumps(words)[:200]}"
            )
