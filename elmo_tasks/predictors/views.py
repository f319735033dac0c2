"""The spans in plain results, and what people see of them: the rows of a table, and pictures by displaCy."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

__all__ = ["Group", "groups_of", "picture", "rows_of"]

# displaCy's own form of an entity, with the probability after the label.
_ENTITY = """<mark class="entity" style="background: {bg}; padding: 0.45em 0.6em; margin: 0 0.25em; line-height: 1;
border-radius: 0.35em;">{text}<span style="font-size: 0.8em; font-weight: bold; margin-left: 0.5rem;">{label}
{probability}</span></mark>"""
_COLORS = ("#7aecec", "#ffd966", "#bfeeb7", "#feca74", "#c887fb", "#e4e7d2", "#ff9561", "#aa9cfc")


class Group(NamedTuple):
    """Spans with labels, and the span that they belong to: a verb, or the first mention of a chain."""

    head: dict[str, Any] | None
    spans: list[dict[str, Any]]


def groups_of(kind: str, result: Any) -> list[Group]:
    """The spans of a plain result: of each predicate or chain, or of the whole text. `kind` is `shown_as`."""
    if kind == "spans":
        return [Group(None, result)]
    if kind == "answer":
        return [Group(None, [{"label": "answer", **result}])]
    if kind == "roles":
        return [Group(predicate, predicate["roles"]) for predicate in result]
    if kind == "chains":
        chains = enumerate(result["chains"], start=1)
        labeled = ([{**mention, "label": str(number)} for mention in mentions] for number, mentions in chains)
        return [Group(mentions[0], mentions) for mentions in labeled]
    raise ValueError(f"expected names, roles, chains or an answer, got {kind}")


def rows_of(kind: str, result: Any) -> Iterator[dict[str, Any]]:
    """The rows of a plain result: of each name, role, mention, or word; else of the text. `kind` is `shown_as`."""
    if kind == "roles":
        for predicate in result:
            about = {"verb": predicate["verb"], "verb_start": predicate["start"], "verb_end": predicate["end"]}
            yield from (about | role for role in predicate["roles"])
    elif kind == "chains":
        for number, mentions in enumerate(result["chains"], start=1):
            yield from ({"chain": number, **mention} for mention in mentions)
    else:
        yield from result if isinstance(result, list) else [result]


def picture(kind: str, text: str, result: Any, language: str) -> str:
    """The HTML of a plain result of a text: marked names or an answer, or lines under roles and chains."""
    from spacy import displacy

    lines = [group.spans for group in groups_of(kind, result)]
    if kind in ("spans", "answer"):
        entities = [
            {**span, "params": {"probability": f"{span['probability']:.2f}" if "probability" in span else ""}}
            for span in lines[0]
        ]
        drawn = {"text": text, "ents": sorted(entities, key=lambda entity: entity["start"])}
        return displacy.render(drawn, style="ent", manual=True, jupyter=False, options={"template": _ENTITY})
    # A line under the text for each predicate, or one for all chains.
    lines = (lines or [[]]) if kind == "roles" else [list(chain.from_iterable(lines))]
    labels = sorted({span["label"] for span in chain.from_iterable(lines)})
    colors = {label: _COLORS[number % len(_COLORS)] for number, label in enumerate(labels)}
    drawn_lines = [_line(text, spans, language) for spans in lines]
    return displacy.render(drawn_lines, style="span", manual=True, jupyter=False, options={"colors": colors})


def _line(text: str, spans: Sequence[dict[str, Any]], language: str) -> dict[str, Any]:
    """A text and its spans as displaCy draws them: by tokens."""
    from elmo_tasks.text.words import lock, pipeline_of

    with lock:
        doc = pipeline_of(language).make_doc(text)
        tokens = [token.text for token in doc]
        found = [(doc.char_span(each["start"], each["end"], alignment_mode="expand"), each) for each in spans]
    drawn = [{"start_token": span.start, "end_token": span.end, "label": each["label"]} for span, each in found]
    return {"text": text, "spans": drawn, "tokens": tokens}
