"""Answers to questions in JSON lines."""

from typing import Any

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.data.fields import IndexField, TextField
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, place_of, span_in

__all__ = ["SquadPredictor"]


@Predictor.register("elmo_squad")
class SquadPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}`, or with SQuAD's key for the
    passage, `context`. `start_char` and `end_char` are the answer's offsets in the passage. If the question or the
    passage has no words, the answer is empty, and its span and score are `None`.

    The plain result is the answer: `text`, `start`, `end` and `probability`.
    """

    title = "Questions"
    inputs = ("question", "passage")
    examples = (
        ("Who designed the bridge?", "The bridge was designed by Anna Keller. It crosses the river at Bern."),
        ("When did the museum open?", "The museum opened in 1897, two years after the fire destroyed its library."),
        ("What do bees collect?", "Bees visit flowers to collect nectar, which they turn into honey in the hive."),
    )
    shown_as = "answer"
    example = '{"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}'
    texts = ("question", "passage")

    def predict(self, question: str, passage: str) -> JsonDict:
        return self.predict_json({"question": question, "passage": passage})

    def parse(self, inputs: JsonDict) -> Any:
        question, passage = inputs["question"], inputs["passage" if "passage" in inputs else "context"]
        has_words = question.strip() and passage.strip()
        return [self._dataset_reader.text_to_instance(question, passage)] if has_words else []

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        return output | place_of(instance["passage"].tokens, *output["best_span"])

    def predictions_to_labeled_instances(self, instance: Instance, outputs: dict[str, Any]) -> list[Instance]:
        # Without the indices of words: AllenNLP's input reduction compares fields, and arrays cannot be compared.
        passage = TextField(instance["passage"].tokens)
        start, end = (IndexField(int(index), passage) for index in outputs["best_span"])
        return [self.labeled(instance, span_start=start, span_end=end)]

    def joined(self, parsed: Any, outputs: list[JsonDict]) -> JsonDict:
        return outputs[0] if outputs else {"best_span_str": "", "best_span": None, "score": None}

    def plain(self, predictions: list[JsonDict], *texts: str) -> Any:
        (prediction,) = predictions
        none = {"text": "", "start": None, "end": None}
        span = none if prediction["best_span"] is None else span_in(texts[1], prediction)
        return {**span, "probability": prediction["score"]}
