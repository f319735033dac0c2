"""Parts of speech of sentences in JSON lines."""

from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor

from elmo_tasks.predictors.sentence_predictor import SentencePredictor

__all__ = ["PosPredictor"]


@Predictor.register("elmo_pos")
class PosPredictor(SentencePredictor):
    """
    The parts of speech of sentences: see `SentencePredictor`; `words` and `tags` come out. With `--use-dataset-reader`,
    `allennlp predict` reads CoNLL-U instead.

    Registered as a `Predictor` with name "elmo_pos". The model is AllenNLP's `simple_tagger`, which asks for another
    predictor by default: name this one, `--predictor elmo_pos`.
    """

    example: ClassVar[JsonDict] = {"sentence": "They play on Saturday afternoons ."}

    def predict_instance(self, instance: Instance) -> JsonDict:
        """The `words` and their `tags`."""
        return _readable(super().predict_instance(instance))

    def predict_batch_instance(self, instances: list[Instance]) -> list[JsonDict]:
        """The same for each of several."""
        return [_readable(output) for output in super().predict_batch_instance(instances)]


def _readable(output: JsonDict) -> JsonDict:
    # The tagger's logits and probabilities would be two rows of numbers for each word.
    return {"words": output["words"], "tags": output["tags"][: len(output["words"])]}
