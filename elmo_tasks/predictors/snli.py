"""The predictor for entailment between two sentences."""

from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.predictors.results import Entailment

__all__ = ["SnliPredictor"]


@Predictor.register("elmo_snli")
class SnliPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence1": "Two dogs run .", "sentence2": "Animals move ."}`, as in SNLI,
    or with the keys `premise` and `hypothesis`. If one of the sentences has no words, the `label`
    is `None` and there are no probabilities. With `attention`, a prediction and the plain result
    contain the attention.
    """

    title = "Entailment"
    about = (
        "Whether a second sentence follows from a first one: the probabilities of `entailment`, "
        "`neutral` and `contradiction`."
    )
    inputs = ("premise", "hypothesis")
    keys: ClassVar[dict[str, str]] = {"premise": "sentence1", "hypothesis": "sentence2"}
    examples = (
        ("Two dogs run across a green field.", "Animals are outside."),
        ("A woman in a red coat buys fruit at a market.", "The woman is asleep at home."),
        ("A man plays the guitar on a stage.", "The man is famous."),
    )
    result_type = Entailment

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, attention: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self.attention = attention

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        if not self.attention:
            output.pop("attention", None)
        return output

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (output,) = outputs
        attention = output.get("attention")
        if attention is None:
            return output["probabilities"]
        premise = output["premise_tokens"]
        hypothesis = output["hypothesis_tokens"]
        tables = [
            {"rows": premise, "columns": hypothesis, "weights": attention["premise"]},
            {"rows": hypothesis, "columns": premise, "weights": attention["hypothesis"]},
        ]
        return {"probabilities": output["probabilities"], "attention": tables}
