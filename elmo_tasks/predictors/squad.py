"""Answers to questions in JSON lines."""

import json
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
    passage, `context`, will do as well, and an `id` comes out as it came in. With `--use-dataset-reader`,
    `allennlp predict` reads SQuAD's files instead, and `allennlp elmo-squad-predictions` makes what the official script
    evaluates of the output.

    Registered as a `Predictor` with name "elmo_squad".
    """

    example: ClassVar[JsonDict] = {"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."}

    def predict(self, question: str, passage: str) -> JsonDict:
        """The answer to a question: see `SquadModel.make_output_human_readable`."""
        return self.predict_json({"question": question, "passage": passage})

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        inputs: Any = json_dict
        if isinstance(inputs, dict):
            question, passage = inputs.get("question"), inputs.get("passage", inputs.get("context"))
            question_id = inputs.get("id")
            if _has_words(question) and _has_words(passage) and isinstance(question_id, str | None):
                return self._dataset_reader.text_to_instance(question, passage, question_id=question_id)
        raise ValueError(
            'the input must have the keys "question" and "passage", each with a text of at least one word, and may '
            f'have the key "id" with a text, but is {json.dumps(inputs)[:200]}'
        )


def _has_words(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())
