"""The sentiment of sentences in JSON lines."""

from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.predictors import Predictor

from elmo_tasks.predictors.sentence_predictor import SentencePredictor

__all__ = ["SstPredictor"]


@Predictor.register("elmo_sst")
class SstPredictor(SentencePredictor):
    """
    The sentiment of sentences: see `SentencePredictor`. With `--use-dataset-reader`, `allennlp predict` reads files of
    trees instead.

    Registered as a `Predictor` with name "elmo_sst".
    """

    example: ClassVar[JsonDict] = {"sentence": "It's a lovely film ."}
