"""Predictors whose lines are single sentences."""

import json
from typing import Any

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor

__all__ = ["SentencePredictor"]


class SentencePredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence": "Jordan beat Chelsea ."}`, which it tokenizes with spaCy's rules, or
    `{"words": ["Jordan", "beat", "Chelsea", "."]}`.

    # Parameters

    model : `Model`
        A model whose reader takes the words of a sentence.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    language : `str`, optional (default = `"en"`)
        The language whose tokenization rules are used.
    """

    def __init__(self, model: Model, dataset_reader: DatasetReader, language: str = "en") -> None:
        super().__init__(model, dataset_reader)
        self._tokenizer = SpacyBlankTokenizer(language)

    def predict(self, sentence: str) -> JsonDict:
        """What the model says of a sentence: see its `make_output_human_readable`."""
        return self.predict_json({"sentence": sentence})

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        inputs: Any = json_dict
        if isinstance(inputs, dict):
            if isinstance(sentence := inputs.get("sentence"), str):
                return self._dataset_reader.text_to_instance(self._tokenizer.tokenize(sentence))
            words = inputs.get("words")
            if isinstance(words, list) and all(isinstance(word, str) for word in words):
                return self._dataset_reader.text_to_instance(words)
        raise ValueError(
            'the input must have the key "sentence" with a text, or "words" with a list of words, '
            f"but is {json.dumps(inputs)[:200]}"
        )
