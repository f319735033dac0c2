"""The predictor for named entities."""

from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.data.fields import SequenceLabelField
from allennlp.predictors import Predictor

from elmo_tasks.predictors.results import Names
from elmo_tasks.predictors.sentence_predictor import TaggingPredictor
from elmo_tasks.text.tags import spans_to_bioul, tags_to_spans

__all__ = ["NerPredictor"]


@Predictor.register("elmo_ner")
class NerPredictor(TaggingPredictor):
    """
    Named entities, for lines as in `SentencePredictor`. The spans of a `sentence` have `start_char`
    and `end_char`.
    """

    title = "Named entities"
    about = (
        "Names in a text: a list of entities, each with `text`, `start`, `end`, `label` and "
        "`probability`."
    )
    examples = (
        ("Angela Merkel met Tim Cook of Apple in Berlin.",),
        ("Could you send the invoice to Paul Novak at Northwind Traders in Boston before Friday?",),
        ("The Red Cross was founded in Geneva by Henry Dunant in 1863.",),
    )
    result_type = Names
    without_words: ClassVar[JsonDict] = {"words": [], "tags": [], "spans": [], "probability": 1.0}

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: JsonDict
    ) -> list[Instance]:
        """
        One instance per entity, as in AllenNLP. A sentence without entities is one instance with
        its tags.
        """
        tags = outputs["tags"]
        spans = tags_to_spans(tags)
        if not spans:
            return [self._tagged(instance, tags)]
        return [self._tagged(instance, spans_to_bioul([span], len(tags))) for span in spans]

    def labeled_for_each(self, instance: Instance, outputs: JsonDict) -> list[Instance]:
        """
        All names as predicted except one: then the loss is close to the log odds of this one. With
        only the one, as AllenNLP labels instances for `InputReduction`, most of the loss is about
        the others.
        """
        tags = outputs["tags"]
        spans = tags_to_spans(tags)
        instances = []
        for left_out in spans:
            other_spans = [span for span in spans if span != left_out]
            instances.append(self._tagged(instance, spans_to_bioul(other_spans, len(tags))))
        return instances

    def _tagged(self, instance: Instance, tags: list[str]) -> Instance:
        return self.labeled(instance, tags=SequenceLabelField(tags, instance["tokens"]))
