"""What the task gives: its own type of results, and the predictor that makes it."""

from collections.abc import Iterator
from typing import Any, ClassVar, TypedDict

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor

from elmo_tasks.predictors import TaggingPredictor
from elmo_tasks.predictors.results import Group, Spans, TextSpan
from elmo_tasks.predictors.tokens import offsets_of, span_in


class Relation(TypedDict):
    label: str
    head: TextSpan
    tail: TextSpan
    probability: float


class Row(TypedDict):
    label: str
    head: str
    head_start: int
    head_end: int
    tail: str
    tail_start: int
    tail_end: int
    probability: float


class Relations(Spans):
    result = list[Relation]
    row = Row
    has_threshold = True

    def above(self, result: Any, threshold: float) -> Any:
        return [relation for relation in result if relation["probability"] >= threshold]

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        for relation in result:
            row = {"label": relation["label"], "probability": relation["probability"]}
            for side in ("head", "tail"):
                name = relation[side]
                row[side] = name["text"]
                row[f"{side}_start"] = name["start"]
                row[f"{side}_end"] = name["end"]
            yield row

    def groups(self, result: Any) -> list[Group]:
        groups = []
        for relation in result:
            head = {**relation["head"], "label": "head"}
            tail = {**relation["tail"], "label": relation["label"], "type": "tail"}
            groups.append(Group(head, [tail]))
        return groups


@Predictor.register("relations")
class RelationPredictor(TaggingPredictor):
    title = "Relations"
    about = (
        "Who works for or lives in what: "
        "a list of relations with `label`, `head`, `tail` and `probability`."
    )
    examples = (("Ann Lee works for Acme.",), ("Tom lives in Rome.",))
    result_type = Relations
    without_words: ClassVar[JsonDict] = {"words": [], "relations": []}

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens = instance["tokens"].tokens
        for relation in output["relations"]:
            for side in ("head", "tail"):
                first, last = relation[side]
                words = " ".join(output["words"][first : last + 1])
                relation[side] = {"words": words, **offsets_of(tokens, first, last)}
        return output

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        relations = []
        for output in outputs:
            for relation in output["relations"]:
                head = span_in(texts[0], relation["head"])
                tail = span_in(texts[0], relation["tail"])
                relations.append({**relation, "head": head, "tail": tail})
        return relations
