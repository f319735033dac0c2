"""Entailment between the sentences of pairs in JSON lines."""

from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor

__all__ = ["SnliPredictor"]


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
    attention : `bool`
        Whether a prediction has the attention too: with `allennlp predict`, `--predictor-args '{"attention": true}'`.
    """

    example: ClassVar[JsonDict] = {"sentence1": "Two dogs run .", "sentence2": "Animals move ."}
    rule: ClassVar[str] = 'a text under "sentence1" and one under "sentence2", or under "premise" and "hypothesis"'
    # The keys of SNLI's files, and those of AllenNLP's predictor.
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"sentence1": ("sentence2",), "premise": ("hypothesis",)}

    def __init__(self, model: Model, dataset_reader: DatasetReader, attention: bool = False) -> None:
        super().__init__(model, dataset_reader)
        self._shows_attention = attention

    def predict(self, premise: str, hypothesis: str) -> JsonDict:
        """The relation of the second sentence to the first: see `Esim.make_output_human_readable`."""
        return self.predict_json({"sentence1": premise, "sentence2": hypothesis})

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: list[Instance]) -> list[JsonDict]:
        outputs: list[JsonDict] = super().predict_batch_instance(instances)
        if not self._shows_attention:
            for output in outputs:
                del output["attention"]
        return outputs

    def instance_of(self, inputs: JsonDict) -> Instance | None:
        texts = [inputs.get(key) for form in self.forms if form in inputs for key in (form, *self.forms[form])]
        return self._dataset_reader.text_to_instance(*texts) if all(isinstance(text, str) for text in texts) else None
