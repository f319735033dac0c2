"""The predictors for pairs of texts in JSON lines: entailment, and answers to questions."""

from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import IndexField, TextField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.predictors.results import Answer, Entailment
from elmo_tasks.predictors.task import place_of, span_in

__all__ = ["SnliPredictor", "SquadPredictor"]


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
        "Whether a second sentence follows from a first one: the probabilities of `entailment`, `neutral` and "
        "`contradiction`."
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
        return {key: value for key, value in output.items() if key != "attention" or self.attention}

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (output,) = outputs
        if output.get("attention") is None:
            return output["probabilities"]
        sides = [output["premise_tokens"], output["hypothesis_tokens"]]
        tables = [
            {"rows": rows, "columns": columns, "weights": output["attention"][name]}
            for name, rows, columns in zip(self.inputs, sides, reversed(sides), strict=True)
        ]
        return {"probabilities": output["probabilities"], "attention": tables}


@Predictor.register("elmo_squad")
class SquadPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}`, or with
    SQuAD's key for the passage, `context`. `start_char` and `end_char` are the answer's offsets in
    the passage. If the question or the passage has no words, the answer is empty, and its span and
    score are `None`.
    """

    title = "Questions"
    about = (
        "The part of a passage that answers a question: `text`, `start`, `end` and `probability`. There is always an "
        "answer, even if the passage has none."
    )
    inputs = ("question", "passage")
    keys: ClassVar[dict[str, str]] = {"passage": "context"}
    examples = (
        (
            "Who designed the bridge?",
            "The bridge was designed by Anna Keller. It crosses the river at Bern.",
        ),
        (
            "When did the museum open?",
            "The museum opened in 1897, two years after the fire destroyed its library.",
        ),
        (
            "What do bees collect?",
            "Bees visit flowers to collect nectar, which they turn into honey in the hive.",
        ),
    )
    result_type = Answer
    without_words: ClassVar[JsonDict] = {"best_span_str": "", "best_span": None, "score": None}

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        return output | place_of(instance["passage"].tokens, *output["best_span"])

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: dict[str, Any]
    ) -> list[Instance]:
        # Without the indices of words: AllenNLP's input reduction compares fields, and arrays
        # cannot be compared.
        passage = TextField(instance["passage"].tokens)
        start, end = (IndexField(int(index), passage) for index in outputs["best_span"])
        return [self.labeled(instance, span_start=start, span_end=end)]

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (output,) = outputs
        none = {"text": "", "start": None, "end": None}
        span = none if output["best_span"] is None else span_in(texts[1], output)
        return {**span, "probability": output["score"]}
