"""Plain results for people: the rows of a table, and pictures by displaCy."""

from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["picture", "rows_of"]

# displaCy's own form of an entity, with the probability after the label.
_ENTITY = """<mark class="entity" style="background: {bg}; padding: 0.45em 0.6em; margin: 0 0.25em; line-height: 1;
border-radius: 0.35em;">{text}<span style="font-size: 0.8em; font-weight: bold; margin-left: 0.5rem;">{label}
{probability}</span></mark>"""
_COLORS = ("#7aecec", "#ffd966", "#bfeeb7", "#feca74", "#c887fb", "#e4e7d2", "#ff9561", "#aa9cfc")


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

    if kind in ("spans", "answer"):
        found = result if kind == "spans" else [{"label": "answer", **result}]
        entities = [
            {**span, "params": {"probability": f"{span['probability']:.2f}" if "probability" in span else ""}}
            for span in found
        ]
        drawn = {"text": text, "ents": sorted(entities, key=lambda entity: entity["start"])}
        return displacy.render(drawn, style="ent", manual=True, jupyter=False, options={"template": _ENTITY})
    if kind == "roles":
        lines = [predicate["roles"] for predicate in result] or [[]]
    elif kind == "chains":
        lines = [[{**mention, "label": str(mention["chain"])} for mention in rows_of(kind, result)]]
    else:
        raise ValueError(f"expected names, roles, chains or an answer to draw, got {kind}")
    labels = sorted({str(span["label"]) for line in lines for span in line})
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
