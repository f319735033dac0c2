"""Named entities of sentences in JSON lines."""

from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.predictors import Predictor

from elmo_tasks.predictors.sentence_predictor import SentencePredictor

__all__ = ["NerPredictor"]


@Predictor.register("elmo_ner")
class NerPredictor(SentencePredictor):
    """
    The entities of sentences: see `SentencePredictor`. With `--use-dataset-reader`, `allennlp predict` reads files in
    columns instead.

    Registered as a `Predictor` with name "elmo_ner".
    """

    example: ClassVar[JsonDict] = {"sentence": "Jordan beat Chelsea ."}
