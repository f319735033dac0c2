"""Entailment between the sentences of pairs in JSON lines."""

from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import LabelField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor

__all__ = ["SnliPredictor"]


@Predictor.register("elmo_snli")
class SnliPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence1": "Two dogs run .", "sentence2": "Animals move ."}`, as SNLI has them, or with the
    keys `premise` and `hypothesis`. A pair with a sentence without words has the label `None` and no probabilities.

    # Parameters

    attention : `bool`
        Whether a prediction contains the attention.
    kwargs
        See `JsonLinesPredictor`.
    """

    example: ClassVar[JsonDict] = {"sentence1": "Two dogs run .", "sentence2": "Animals move ."}
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"sentence1": ("sentence2",), "premise": ("hypothesis",)}
    texts: ClassVar[tuple[str, ...]] = ("premise", "hypothesis")

    def __init__(self, model: Model, dataset_reader: DatasetReader, attention: bool = False, **kwargs: Any) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._shows_attention = attention

    def predict(self, premise: str, hypothesis: str) -> JsonDict:
        return self.predict_json({"sentence1": premise, "sentence2": hypothesis})

    def outcome_of(self, inputs: JsonDict) -> Instance | JsonDict:
        keys = ("sentence1", "sentence2") if "sentence1" in inputs else self.texts
        premise, hypothesis = (inputs[key] for key in keys)
        if premise.strip() and hypothesis.strip():
            return self._dataset_reader.text_to_instance(premise, hypothesis)
        words = [self._words(premise), self._words(hypothesis)]
        prediction: JsonDict = {"label": None, "probabilities": {}}
        if self._shows_attention:
            # A row for each word, with a weight for each word of the other sentence.
            prediction["attention"] = dict(zip(self.texts, ([[] for _ in row] for row in words), strict=True))
        return prediction | {"premise_tokens": words[0], "hypothesis_tokens": words[1]}

    def _words(self, text: str) -> list[str]:
        return self._dataset_reader.text_to_instance(text, text)["metadata"]["premise_tokens"] if text.strip() else []

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        return {key: value for key, value in output.items() if key != "attention" or self._shows_attention}

    def predictions_to_labeled_instances(self, instance: Instance, outputs: dict[str, Any]) -> list[Instance]:
        return [self.labeled(instance, label=LabelField(outputs["label"]))]
