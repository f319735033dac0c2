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

    A pair with a sentence without words has the label `None` and no probabilities.

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

    def predict_batch_instance(self, instances: list[Instance]) -> list[JsonDict]:
        outputs: list[JsonDict] = super().predict_batch_instance(instances)
        if not self._shows_attention:
            for output in outputs:
                del output["attention"]
        return outputs

    def instance_of(self, inputs: JsonDict) -> Instance | JsonDict | None:
        texts = [inputs.get(key) for form in self.forms if form in inputs for key in (form, *self.forms[form])]
        if not all(isinstance(text, str) for text in texts):
            return None
        if all(map(str.strip, texts)):
            return self._dataset_reader.text_to_instance(*texts)
        premise, hypothesis = (self._words(text) for text in texts)
        prediction: JsonDict = {
            "label": None,
            "probabilities": {},
            "premise_tokens": premise,
            "hypothesis_tokens": hypothesis,
        }
        if self._shows_attention:
            # A row for each word, with a weight for each word of the other sentence: there are none.
            prediction["attention"] = {"premise": [[] for _ in premise], "hypothesis": [[] for _ in hypothesis]}
        return prediction

    def _words(self, text: str) -> list[str]:
        """The words of a sentence, as the reader splits it."""
        if not text.strip():
            return []
        words: list[str] = self._dataset_reader.text_to_instance(text, text)["metadata"]["premise_tokens"]
        return words
