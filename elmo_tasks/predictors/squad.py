"""Answers to questions in JSON lines."""

from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor

__all__ = ["SquadPredictor"]


@Predictor.register("elmo_squad")
class SquadPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}`; SQuAD's name of the
    passage, `context`, is allowed too, and an `id` is kept. With `--use-dataset-reader`,
    `allennlp predict` reads SQuAD's files instead, and `allennlp elmo-squad-predictions` turns the output into the file
    that the official script evaluates.

    If the question or the passage has no words, the answer is empty, and its span and score are `None`.

    Registered as a `Predictor` with name "elmo_squad".
    """

    example: ClassVar[JsonDict] = {"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}
    rule: ClassVar[str] = 'the keys "question" and "passage", each with a text, and may have the key "id" with a text'
    verbatim: ClassVar[tuple[str, ...]] = ("id",)
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"passage": ("question", "id"), "context": ("question", "id")}

    def predict(self, question: str, passage: str) -> JsonDict:
        """The answer to a question: see `SquadModel.make_output_human_readable`."""
        return self.predict_json({"question": question, "passage": passage})

    def instance_of(self, inputs: JsonDict) -> Instance | JsonDict | None:
        question, passage = inputs.get("question"), inputs.get("passage", inputs.get("context"))
        question_id = inputs.get("id")
        if not (isinstance(question, str) and isinstance(passage, str) and isinstance(question_id, str | None)):
            return None
        if question.strip() and passage.strip():
            return self._dataset_reader.text_to_instance(question, passage, question_id=question_id)
        return {
            "id": question_id or "",
            "question_tokens": self._words(question, "question"),
            "passage_tokens": self._words(passage, "passage"),
            "best_span_str": "",
            "best_span": None,
            "score": None,
        }

    def _words(self, text: str, name: str) -> list[str]:
        """The words of a question or a passage, as the reader splits it."""
        if not text.strip():
            return []
        words: list[str] = self._dataset_reader.text_to_instance(text, text)["metadata"][f"{name}_tokens"]
        return words
