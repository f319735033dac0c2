"""Entailment between the sentences of pairs in JSON lines."""

import json
from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor

__all__ = ["SnliPredictor"]

# The keys of SNLI's files, and those of AllenNLP's predictor.
_KEYS = (("sentence1", "sentence2"), ("premise", "hypothesis"))


@Predictor.register("elmo_snli")
class SnliPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence1": "Two dogs run .", "sentence2": "Animals move ."}`, as SNLI has them, or with the
    keys `premise` and `hypothesis`. With `--use-dataset-reader`, `allennlp predict` reads SNLI's files instead.

    Registered as a `Predictor` with name "elmo_snli".

    # Parameters

    model : `Model`
        ESIM.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    attention : `bool`, optional (default = `False`)
        Whether the attention is put out too: with `allennlp predict`, `--predictor-args '{"attention": true}'`.
    """

    example: ClassVar[JsonDict] = {"sentence1": "Two dogs run .", "sentence2": "Animals move ."}

    def __init__(self, model: Model, dataset_reader: DatasetReader, attention: bool = False) -> None:
        super().__init__(model, dataset_reader)
        self._shows_attention = attention

    def predict(self, premise: str, hypothesis: str) -> JsonDict:
        """What the second sentence is to the first: see `Esim.make_output_human_readable`."""
        return self.predict_json({"sentence1": premise, "sentence2": hypothesis})

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: list[Instance]) -> list[JsonDict]:
        outputs: list[JsonDict] = super().predict_batch_instance(instances)
        if not self._shows_attention:
            for output in outputs:
                del output["attention"]
        return outputs

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        inputs: Any = json_dict
        for keys in _KEYS:
            if isinstance(inputs, dict) and all(isinstance(inputs.get(key), str) for key in keys):
                return self._dataset_reader.text_to_instance(*(inputs[key] for key in keys))
        raise ValueError(
            'the input must have a text under "sentence1" and one under "sentence2", or under "premise" and '
            f'"hypothesis", but is {json.dumps(inputs)[:200]}'
        )
