"""Conversion between spans and one tag per word."""

from collections.abc import Iterable

__all__ = ["TypedSpan", "spans_to_bioul", "tags_to_spans"]

TypedSpan = tuple[str, int, int]
"""The type, first word and last word (inclusive, as everywhere in AllenNLP) of an entity."""


def tags_to_spans(tags: Iterable[str]) -> list[TypedSpan]:
    """
    The entities in a sequence of tags (`O`, or a prefix and a type like `B-PER`) in text order, by
    the rule of CoNLL's `conlleval`. An entity begins at `B-` (or `S-`, `U-`), where the type
    changes, and after a word outside entities. It ends before the next entity or outside word, and
    after `E-`, `L-`, `S-` and `U-`.

    The rule works for IOB1, BIO, BIOES and BIOUL, and interprets malformed sequences too.
    """
    spans: list[TypedSpan] = []
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


def spans_to_bioul(spans: Iterable[TypedSpan], length: int) -> list[str]:
    """
    Converts spans that do not overlap to a BIOUL tag for each of `length` words: `B`, `I` and `L`
    for the first, inner and last word of an entity, `U` for an entity of one word.
    """
    tags = ["O"] * length
    for label, first_word, last_word in spans:
        if first_word == last_word:
            tags[first_word] = f"U-{label}"
            continue
        tags[first_word] = f"B-{label}"
        for inner_word in range(first_word + 1, last_word):
            tags[inner_word] = f"I-{label}"
        tags[last_word] = f"L-{label}"
    return tags
