"""Coreference in documents in JSON lines."""

import json
from typing import Any, ClassVar

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, are_words
from elmo_tasks.tokenization import blank_sentences

__all__ = ["CorefPredictor"]


@Predictor.register("elmo_coref")
class CorefPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"document": "Ann sang. She was tired."}`, which it cuts into sentences and words with spaCy's
    rules, or `{"sentences": [["Ann", "sang", "."], ["She", "was", "tired", "."]]}`. Either may have a `genre`, two
    letters as in OntoNotes; `sentences` may also have `speakers`, one for each sentence. A document without words has
    no clusters. With `--use-dataset-reader`, `allennlp predict` reads CoNLL's files instead.

    Registered as a `Predictor` with name "elmo_coref".

    # Parameters

    model : `Model`
        The model.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    language : `str`
        The language whose rules are used, as spaCy's code.

    # Raises

    `ConfigurationError`
        If spaCy does not know the language.
    `ImportError`
        If spaCy knows it and something else is missing.
    """

    example: ClassVar[JsonDict] = {"document": "Ann sang. She was tired."}
    rule: ClassVar[str] = 'the key "document" with a text, or "sentences" with lists of words'
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"document": ("genre",), "sentences": ("speakers", "genre")}

    def __init__(self, model: Model, dataset_reader: DatasetReader, language: str = "en") -> None:
        super().__init__(model, dataset_reader)
        try:
            self._sentences = blank_sentences(language)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error

    def predict(self, document: str) -> JsonDict:
        """The clusters of a text: see `CorefResolver.make_output_human_readable`."""
        return self.predict_json({"document": document})

    def instance_of(self, inputs: JsonDict) -> Instance | None:
        genre = inputs.get("genre")
        if not (genre is None or isinstance(genre, str)):
            raise ValueError(f'"genre" must be a text, but is {json.dumps(genre)[:200]}')
        document, sentences = inputs.get("document"), inputs.get("sentences")
        if isinstance(document, str):
            return self._dataset_reader.text_to_instance(self._sentences(document), genre=genre)
        if not isinstance(sentences, list) or not all(map(are_words, sentences)):
            return None
        speakers = _speakers(inputs.get("speakers"), sentences)
        return self._dataset_reader.text_to_instance(sentences, speakers, genre=genre)


def _speakers(speakers: Any, sentences: list[list[str]]) -> list[list[str]] | None:
    """The speaker of each word."""
    if speakers is None:
        return None
    if not are_words(speakers) or len(speakers) != len(sentences):
        raise ValueError(
            f'"speakers" must be a list of names, one for each of the {len(sentences)} sentences, '
            f"but is {json.dumps(speakers)[:200]}"
        )
    return [[speaker] * len(words) for speaker, words in zip(speakers, sentences, strict=True)]
