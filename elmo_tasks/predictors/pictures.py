"""Plain results as HTML. Texts of displaCy are escaped by it, labels are not."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from itertools import chain
from typing import Any

from elmo_tasks.predictors.results import Chains, Label, ResultType, words_at

__all__ = ["picture", "table"]

# displaCy's own form of an entity, with the probability after the label.
_ENTITY = """<mark class="entity" style="background: {bg}; padding: 0.45em 0.6em; margin: 0 0.25em;
line-height: 1; border-radius: 0.35em;">{text}<span style="font-size: 0.8em; font-weight: bold;
margin-left: 0.5rem;">{label}
{probability}</span></mark>"""
# In the word where a span begins, so the word is as wide as the label under it.
_SPACE_FOR_LABEL = """<span style="display: block; visibility: hidden; height: 0; contain: layout;
padding: 0 7px; font-size: 0.6em; white-space: nowrap;">{label}</span>"""
_COLORS = ("#7aecec", "#ffd966", "#bfeeb7", "#feca74", "#c887fb", "#e4e7d2", "#ff9561", "#aa9cfc")


def picture(result_type: ResultType, text: str, result: Any, language: str) -> str:
    """
    The result of a text: marked spans, or a line under the text for each group of spans; bars for
    labels; otherwise JSON. `language` splits the text into words.
    """
    if isinstance(result_type, Label):
        return _labels(result_type, result)
    if not result_type.has_spans:
        return f"<pre>{escape(json.dumps(result, ensure_ascii=False, indent=2))}</pre>"
    groups = result_type.groups(result)
    all_spans = list(chain.from_iterable(group.spans for group in groups))
    if any(group.head is None for group in groups):
        return _marked(text, all_spans)
    if isinstance(result_type, Chains):
        return _lines(text, [all_spans], language)
    lines = []
    for head, spans in groups:
        lines.append([head, *spans] if "label" in head else spans)
    return _lines(text, lines or [[]], language)


def _labels(result_type: Label, result: Any) -> str:
    bars = []
    for label, probability in result_type.probabilities(result).items():
        bars.append(_bar(result_type.shown(label), probability))
    style = "display: grid; grid-template-columns: auto 1fr; gap: 0.3em 1em"
    html = [f'<div style="{style}">{"".join(bars)}</div>']
    for attention in result.get("attention", ()):
        html.append(table(**attention))
    return "".join(html)


def _marked(text: str, spans: Iterable[Any]) -> str:
    """A text with marked spans."""
    from spacy import displacy

    entities = []
    for span in sorted(spans, key=lambda span: span["start"]):
        probability = f"{span['probability']:.2f}" if "probability" in span else ""
        entities.append(
            {**span, "label": escape(span["label"]), "params": {"probability": probability}}
        )
    drawn = {"text": text, "ents": entities}
    return displacy.render(
        drawn, style="ent", manual=True, jupyter=False, options={"template": _ENTITY}
    )


def _lines(text: str, lines: list[list[Any]], language: str) -> str:
    """A text for each line of spans under it."""
    from spacy import displacy
    from spacy.displacy.templates import TPL_SPAN, TPL_SPAN_SLICE, TPL_SPAN_START

    from elmo_tasks.text import located_words

    words = located_words(text, language)
    offsets = [(word.start, word.end) for word in words]
    tokens = [word.text for word in words]
    drawn = []
    labels = set()
    for spans in lines:
        token_spans = []
        for span in spans:
            numbers = words_at(offsets, span)
            label = escape(span["label"])
            labels.add(label)
            token_spans.append(
                {"start_token": numbers.start, "end_token": numbers.stop, "label": label}
            )
        drawn.append({"text": text, "spans": token_spans, "tokens": tokens})
    colors = {label: _COLORS[number % len(_COLORS)] for number, label in enumerate(sorted(labels))}
    template = {
        "span": TPL_SPAN,
        "slice": TPL_SPAN_SLICE,
        "start": TPL_SPAN_START + _SPACE_FOR_LABEL,
    }
    options = {"colors": colors, "template": template}
    return displacy.render(drawn, style="span", manual=True, jupyter=False, options=options)


def _bar(label: str, probability: float) -> str:
    width = f"{80 * probability:.1f}%"
    bar = f'<div style="background: {_COLORS[0]}; width: {width}">&nbsp;</div>'
    return (
        f"<div>{escape(label)}</div>"
        f'<div style="display: flex; gap: 0.5em">{bar}{probability:.2f}</div>'
    )


def table(rows: Sequence[str], columns: Sequence[str], weights: Sequence[Sequence[float]]) -> str:
    """Weights of the columns for each row, as HTML."""
    header = "".join(f"<th>{escape(column)}</th>" for column in ["", *columns])
    lines = [f"<tr>{header}</tr>"]
    for row, row_weights in zip(rows, weights, strict=True):
        cells = [f"<th>{escape(row)}</th>"]
        for weight in row_weights:
            color = f"rgb(122 236 236 / {weight:.2f})"
            cells.append(f'<td style="background: {color}">{weight:.2f}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"
