"""Entailment between sentence pairs in JSON lines."""

from typing import Any

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
    Takes lines like `{"sentence1": "Two dogs run .", "sentence2": "Animals move ."}`, as in SNLI, or with the keys
    `premise` and `hypothesis`. If one of the sentences has no words, the `label` is `None` and there are no
    probabilities.

    The plain result has the probabilities of `entailment`, `neutral` and `contradiction`.

    # Parameters

    attention : `bool`
        Whether a prediction and the plain result contain the attention.
    kwargs
        See `JsonLinesPredictor`.
    """

    title = "Entailment"
    inputs = ("premise", "hypothesis")
    examples = (
        ("Two dogs run across a green field.", "Animals are outside."),
        ("A woman in a red coat buys fruit at a market.", "The woman is asleep at home."),
        ("A man plays the guitar on a stage.", "The man is famous."),
    )
    shown_as = "label"
    example = '{"sentence1": "Two dogs run .", "sentence2": "Animals move ."}'
    texts = ("premise", "hypothesis")

    def __init__(self, model: Model, dataset_reader: DatasetReader, attention: bool = False, **kwargs: Any) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self.attention = attention

    def predict(self, premise: str, hypothesis: str) -> JsonDict:
        return self.predict_json({"premise": premise, "hypothesis": hypothesis})

    def parse(self, inputs: JsonDict) -> Any:
        keys = ("sentence1", "sentence2") if "sentence1" in inputs else self.texts
        premise, hypothesis = (inputs[key] for key in keys)
        has_words = premise.strip() and hypothesis.strip()
        return [self._dataset_reader.text_to_instance(premise, hypothesis)] if has_words else []

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        return {key: value for key, value in output.items() if key != "attention" or self.attention}

    def predictions_to_labeled_instances(self, instance: Instance, outputs: dict[str, Any]) -> list[Instance]:
        return [self.labeled(instance, label=LabelField(outputs["label"]))]

    def joined(self, parsed: Any, outputs: list[JsonDict]) -> JsonDict:
        return outputs[0] if outputs else {"label": None, "probabilities": {}}

    def plain(self, predictions: list[JsonDict], *texts: str) -> Any:
        (prediction,) = predictions
        if "attention" not in prediction:
            return prediction["probabilities"]
        sides = [prediction["premise_tokens"], prediction["hypothesis_tokens"]]
        tables = [
            {"rows": rows, "columns": columns, "weights": prediction["attention"][name]}
            for name, rows, columns in zip(self.inputs, sides, reversed(sides), strict=True)
        ]
        return {"probabilities": prediction["probabilities"], "attention": tables}
