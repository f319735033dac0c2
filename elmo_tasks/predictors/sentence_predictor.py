"""The predictor of all models of single sentences."""

from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, are_words

__all__ = ["SentencePredictor"]


@Predictor.register("elmo_sentence")
class SentencePredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence": "Jordan beat Chelsea ."}`, which it tokenizes with spaCy's rules, or
    `{"words": ["Jordan", "beat", "Chelsea", "."]}`. A prediction is what the model's `make_output_human_readable`
    returns. With `--use-dataset-reader`, `allennlp predict` reads the files of the task instead.

    A sentence without words has the prediction that the model's `prediction_without_words` returns: no tags and no
    spans, or the label `None` and no probabilities. A model of another package, without that method, gets it like any
    other sentence.

    Registered as a `Predictor` with name "elmo_sentence": the one of named entities, sentiment and parts of speech, and
    of any model whose reader's `text_to_instance` takes the words of a sentence.

    # Parameters

    model : `Model`
        The model.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    language : `str`
        The language whose tokenization rules are used, as spaCy's code.
    """

    example: ClassVar[JsonDict] = {"sentence": "Jordan beat Chelsea ."}
    rule: ClassVar[str] = 'the key "sentence" with a text, or "words" with a list of words'
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"sentence": (), "words": ()}

    def __init__(self, model: Model, dataset_reader: DatasetReader, language: str = "en") -> None:
        super().__init__(model, dataset_reader)
        self._tokenizer = SpacyBlankTokenizer(language)

    def predict(self, sentence: str) -> JsonDict:
        """The prediction for a sentence: see the model's `make_output_human_readable`."""
        return self.predict_json({"sentence": sentence})

    def instance_of(self, inputs: JsonDict) -> Instance | JsonDict | None:
        sentence, words = inputs.get("sentence"), inputs.get("words")
        if isinstance(sentence, str):
            words = self._tokenizer.tokenize(sentence)
        elif not are_words(words):
            return None
        if not words and hasattr(self._model, "prediction_without_words"):
            return self._model.prediction_without_words()
        return self._dataset_reader.text_to_instance(words)
