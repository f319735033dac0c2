"""Conversion between spans and one tag per word."""

from collections.abc import Iterable, Sequence

__all__ = ["Span", "spans_to_bioul", "tags_to_spans"]

Span = tuple[str, int, int]
"""The type, first word and last word (inclusive, as everywhere in AllenNLP) of an entity."""


def tags_to_spans(tags: Iterable[str]) -> list[Span]:
    """
    The entities in a sequence of tags (`O`, or a prefix and a type like `B-PER`) in text order, by
    the rule of CoNLL's `conlleval`. An entity begins at `B-` (or `S-`, `U-`), where the type
    changes, and after a word outside entities. It ends before the next entity or outside word, and
    after `E-`, `L-`, `S-` and `U-`.

    The rule works for IOB1, BIO, BIOES and BIOUL, and interprets malformed sequences too.
    """
    spans: list[Span] = []
    is_inside = False
    for index, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix == "O":
            is_inside = False
            continue
        if is_inside and prefix not in "BSU" and spans[-1][0] == label:
            spans[-1] = (label, spans[-1][1], index)
        else:
            spans.append((label, index, index))
        is_inside = prefix not in "ELSU"
    return spans


def spans_to_bioul(spans: Iterable[Span], length: int) -> list[str]:
    """
    Converts spans that do not overlap to a BIOUL tag for each of `length` words: `B`, `I` and `L`
    for the first, inner and last word of an entity, `U` for an entity of one word.
    """
    tags = ["O"] * length
    for label, first, last in spans:
        prefixes: Sequence[str] = "U" if first == last else ["B", *"I" * (last - first - 1), "L"]
        tags[first : last + 1] = [f"{prefix}-{label}" for prefix in prefixes]
    return tags
