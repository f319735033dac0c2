"""The predictor for parts of speech."""

from typing import Any, ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor

from elmo_tasks.predictors.results import TaggedWords
from elmo_tasks.predictors.sentence_predictor import TaggingPredictor
from elmo_tasks.predictors.tokens import offsets_of, span_in

__all__ = ["PosPredictor"]


@Predictor.register("elmo_pos")
class PosPredictor(TaggingPredictor):
    """Parts of speech, for lines as in `SentencePredictor`."""

    title = "Parts of speech"
    about = (
        "Parts of speech: a list of words with `text`, `start`, `end`, `label` and `probability`. "
        "A model of both columns of CoNLL-U, such as the included one, also gives `xpos`; its "
        "`label` is the universal tag."
    )
    examples = (
        ("They play on Saturdays.",),
        ("The play was a great success.",),
        ("Please book a table for two.",),
    )
    result_type = TaggedWords
    without_words: ClassVar[JsonDict] = {"words": [], "tags": [], "probabilities": []}

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        """Adds the offsets of the words as `places`, if they come from a text."""
        tokens = instance["tokens"].tokens
        places = [offsets_of(tokens, number, number) for number in range(len(tokens))]
        if all(places):
            return {**output, "places": places}
        return output

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (text,) = texts
        words = []
        for output in outputs:
            places = output.get("places", ())
            for place, tag, probability in zip(
                places, output["tags"], output["probabilities"], strict=True
            ):
                word = span_in(text, place)
                for column, label in zip(("label", "xpos"), self._columns_of(tag), strict=False):
                    word[column] = label
                word["probability"] = probability
                words.append(word)
        return words

    def label_of(self, label: str) -> str:
        return self._columns_of(label)[0]

    def _columns_of(self, tag: str) -> list[str]:
        """The labels in a tag of one or several columns of CoNLL-U."""
        columns = getattr(self._dataset_reader, "columns", ("upos",))
        # If the model has only one column, a tag may itself contain a "|".
        return tag.split("|", len(columns) - 1)
