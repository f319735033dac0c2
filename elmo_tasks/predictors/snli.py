"""Entailment between sentence pairs in JSON lines."""

from typing import Any

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor

__all__ = ["SnliPredictor"]


@Predictor.register("elmo_snli")
class SnliPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence1": "Two dogs run .", "sentence2": "Animals move ."}`, as in SNLI, or with the keys
    `premise` and `hypothesis`. If one of the sentences has no words, the `label` is `None` and there are no
    probabilities.

    # Parameters

    attention : `bool`
        Whether a prediction contains the attention.
    kwargs
        See `JsonLinesPredictor`.
    """

    example = '{"sentence1": "Two dogs run .", "sentence2": "Animals move ."}'
    texts = ("premise", "hypothesis")

    def __init__(self, model: Model, dataset_reader: DatasetReader, attention: bool = False, **kwargs: Any) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._shows_attention = attention

    def predict(self, premise: str, hypothesis: str) -> JsonDict:
        return self.predict_json({"premise": premise, "hypothesis": hypothesis})

    def outcome_of(self, inputs: JsonDict) -> Instance | JsonDict:
        keys = ("sentence1", "sentence2") if "sentence1" in inputs else self.texts
        premise, hypothesis = (inputs[key] for key in keys)
        if premise.strip() and hypothesis.strip():
            return self._dataset_reader.text_to_instance(premise, hypothesis)
        return {"label": None, "probabilities": {}}

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        return {key: value for key, value in output.items() if key != "attention" or self._shows_attention}
