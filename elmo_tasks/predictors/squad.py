"""Answers to questions in JSON lines."""

from typing import Any, ClassVar

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

    Registered as a `Predictor` with name "elmo_squad".
    """

    example: ClassVar[JsonDict] = {"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}
    rule: ClassVar[str] = (
        'the keys "question" and "passage", each with a text of at least one word, and may have the key "id" with a '
        "text"
    )
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"passage": ("question", "id"), "context": ("question", "id")}

    def predict(self, question: str, passage: str) -> JsonDict:
        """The answer to a question: see `SquadModel.make_output_human_readable`."""
        return self.predict_json({"question": question, "passage": passage})

    def instance_of(self, inputs: JsonDict) -> Instance | None:
        question, passage = inputs.get("question"), inputs.get("passage", inputs.get("context"))
        question_id = inputs.get("id")
        if not (_has_words(question) and _has_words(passage) and isinstance(question_id, str | None)):
            return None
        return self._dataset_reader.text_to_instance(question, passage, question_id=question_id)


def _has_words(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())
