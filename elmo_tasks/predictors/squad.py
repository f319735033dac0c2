"""Answers to questions in JSON lines."""

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, places

__all__ = ["SquadPredictor"]


@Predictor.register("elmo_squad")
class SquadPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}`, or with SQuAD's key for the
    passage, `context`. `start_char` and `end_char` are the answer's offsets in the passage. If the question or the
    passage has no words, the answer is empty, and its span and score are `None`.
    """

    example = '{"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}'
    texts = ("question", "passage")

    def predict(self, question: str, passage: str) -> JsonDict:
        return self.predict_json({"question": question, "passage": passage})

    def outcome_of(self, inputs: JsonDict) -> Instance | JsonDict:
        question, passage = inputs["question"], inputs["passage" if "passage" in inputs else "context"]
        if question.strip() and passage.strip():
            return self._dataset_reader.text_to_instance(question, passage)
        return {"best_span_str": "", "best_span": None, "score": None}

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        return output | places(instance["passage"].tokens, *output["best_span"])
