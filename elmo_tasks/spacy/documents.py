"""The only place that writes the results of trained tasks into a `Doc`."""

from typing import Any

from spacy.tokens import Doc

from elmo_tasks.predictors.results import Chains, Label, Names, ResultType, Roles, TaggedWords
from elmo_tasks.spacy.span_groups import CHAINS, PREDICATES, set_groups, set_spans, tokens_at

__all__ = ["keep_result", "set_result"]


def set_result(doc: Doc, name: str, result_type: ResultType, result: Any) -> None:
    """
    Sets what spaCy has for a type of results, and otherwise keeps the plain result: see
    `keep_result`. Spans of other types are also in `doc.spans[name]`.
    """
    if isinstance(result_type, Names):
        _set_entities(doc, result)
    elif isinstance(result_type, TaggedWords):
        _set_tags(doc, result_type, result)
    elif isinstance(result_type, Roles):
        set_groups(doc, PREDICATES, "srl_predicates_", result_type.groups(result))
    elif isinstance(result_type, Chains):
        set_groups(doc, CHAINS, "coref_clusters_", result_type.groups(result))
        doc._.resolved = result["resolved"]
    elif isinstance(result_type, Label):
        doc.cats |= result_type.probabilities(result)
    else:
        keep_result(doc, name, result)
        if result_type.has_spans:
            _set_spans(doc, name, result_type, result)


def keep_result(doc: Doc, name: str, result: Any) -> None:
    """Adds a plain result to `doc._.results`, by the name of its component or task."""
    doc._.results = {**doc._.results, name: result}


def _set_entities(doc: Doc, names: Any) -> None:
    """Adds entities where neither an entity nor a blocked token is set, as spaCy's `ner`."""
    entities = list(doc.ents)
    blocked = []
    for token in doc:
        if token.ent_iob_ == "B" and not token.ent_type:
            blocked.append(doc[token.i : token.i + 1])
    taken: set[int] = set()
    for span in [*entities, *blocked]:
        taken.update(range(span.start, span.end))
    for name in names:
        span = tokens_at(doc, name["start"], name["end"], name["label"])
        if taken.isdisjoint(range(span.start, span.end)):
            span._.probability = name["probability"]
            entities.append(span)
    doc.set_ents(entities, blocked=blocked)


def _set_tags(doc: Doc, result_type: TaggedWords, result: Any) -> None:
    words = [(token.idx, token.idx + len(token)) for token in doc]
    for token, tag in zip(doc, result_type.tags(words, result), strict=True):
        if token.is_space:
            token.tag_ = "_SP"
            token.pos_ = "SPACE"
            continue
        token.tag_ = tag["xpos"]
        if tag["upos"] != "_":
            token.pos_ = tag["upos"]


def _set_spans(doc: Doc, name: str, result_type: ResultType, result: Any) -> None:
    spans = []
    for head, group_spans in result_type.groups(result):
        if head is not None and "label" in head:
            spans.append(head)
        spans.extend(group_spans)
    set_spans(doc, name, spans)
