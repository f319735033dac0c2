"""Coreference in documents in JSON lines."""

import json
from typing import Any, ClassVar

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.tokenization import blank_sentences

__all__ = ["CorefPredictor"]


@Predictor.register("elmo_coref")
class CorefPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"document": "Ann sang. She was tired."}`, which it cuts into sentences and words with spaCy's
    rules, or `{"sentences": [["Ann", "sang", "."], ["She", "was", "tired", "."]]}`. Beside either there may be a
    `genre`, two letters as in OntoNotes; beside `sentences` also `speakers`, one for each sentence. With
    `--use-dataset-reader`, `allennlp predict` reads CoNLL's files instead.

    Registered as a `Predictor` with name "elmo_coref".

    # Parameters

    model : `Model`
        The model.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    language : `str`, optional (default = `"en"`)
        The language whose rules are used.

    # Raises

    `ConfigurationError`
        If spaCy does not know the language.
    `ImportError`
        If spaCy knows it and something else is missing.
    """

    example: ClassVar[JsonDict] = {"document": "Ann sang. She was tired."}

    def __init__(self, model: Model, dataset_reader: DatasetReader, language: str = "en") -> None:
        super().__init__(model, dataset_reader)
        try:
            self._sentences = blank_sentences(language)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error

    def predict(self, document: str) -> JsonDict:
        """The clusters of a text: see `CorefResolver.make_output_human_readable`."""
        return self.predict_json({"document": document})

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        inputs: Any = json_dict
        if isinstance(inputs, dict):
            genre = inputs.get("genre")
            if not (genre is None or isinstance(genre, str)):
                raise ValueError(f'"genre" must be a text, but is {json.dumps(genre)[:200]}')
            if isinstance(document := inputs.get("document"), str):
                return self._dataset_reader.text_to_instance(self._sentences(document), genre=genre)
            sentences = inputs.get("sentences")
            if isinstance(sentences, list) and all(map(_are_words, sentences)):
                speakers = _speakers(inputs.get("speakers"), sentences)
                return self._dataset_reader.text_to_instance(sentences, speakers, genre=genre)
        raise ValueError(
            'the input must have the key "document" with a text, or "sentences" with lists of words, '
            f"but is {json.dumps(inputs)[:200]}"
        )


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _speakers(speakers: Any, sentences: list[list[str]]) -> list[list[str]] | None:
    """The speaker of each word."""
    if speakers is None:
        return None
    if not _are_words(speakers) or len(speakers) != len(sentences):
        raise ValueError(
            f'"speakers" must be a list of names, one for each of the {len(sentences)} sentences, '
            f"but is {json.dumps(speakers)[:200]}"
        )
    return [[speaker] * len(words) for speaker, words in zip(speakers, sentences, strict=True)]
