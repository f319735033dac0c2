"""The predictor for sentiment."""

from typing import Any

from allennlp.common.util import JsonDict
from allennlp.predictors import Predictor

from elmo_tasks.predictors.results import Stars
from elmo_tasks.predictors.sentence_predictor import SentencePredictor

__all__ = ["SstPredictor"]


@Predictor.register("elmo_sst")
class SstPredictor(SentencePredictor):
    """Sentiment, for lines as in `SentencePredictor`. A text is read as one sentence."""

    title = "Sentiment"
    about = (
        "How positive a text is: `stars`, from 1 to 5, and the `probabilities` of each number of "
        "stars."
    )
    examples = (
        ("A warm and funny film with a wonderful cast.",),
        ("Long, loud and very dull.",),
        ("The story is thin, but the songs are a delight.",),
    )
    result_type = Stars

    def label_of(self, label: str) -> str:
        # The labels of the treebank are 0, very negative, to 4.
        return str(int(label) + 1)

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        probabilities = {}
        for label, probability in super().result(outputs).items():
            probabilities[int(self.label_of(label))] = probability
        # `None` for a text without words.
        stars = max(probabilities, key=lambda number: probabilities[number], default=None)
        return {"stars": stars, "probabilities": probabilities}
