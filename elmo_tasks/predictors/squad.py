"""The predictor for answers to questions."""

from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.data.fields import IndexField, TextField
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.predictors.results import Answer
from elmo_tasks.predictors.tokens import offsets_of, span_in

__all__ = ["SquadPredictor"]


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
        "The part of a passage that answers a question: `text`, `start`, `end` and `probability`. "
        "There is always an answer, even if the passage has none."
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
        """Adds the offsets of the answer."""
        first, last = output["best_span"]
        return output | offsets_of(instance["passage"].tokens, first, last)

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: JsonDict
    ) -> list[Instance]:
        # Without the indices of words: AllenNLP's input reduction compares fields, and arrays
        # cannot be compared.
        passage = TextField(instance["passage"].tokens)
        first, last = outputs["best_span"]
        start = IndexField(int(first), passage)
        end = IndexField(int(last), passage)
        return [self.labeled(instance, span_start=start, span_end=end)]

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (output,) = outputs
        _, passage = texts
        if output["best_span"] is None:
            span = {"text": "", "start": None, "end": None}
        else:
            span = span_in(passage, output)
        return {**span, "probability": output["score"]}
