"""Spans as a tag for each word, and back."""

from collections.abc import Iterable, Sequence

__all__ = ["Span", "spans_to_bioul", "tags_to_spans"]

Span = tuple[str, int, int]
"""Type, first and last word (inclusive, as everywhere in AllenNLP) of an entity."""


def tags_to_spans(tags: Iterable[str]) -> list[Span]:
    """
    The entities in a sequence of tags (`O`, or a prefix and a type like `B-PER`), in the order of the text, by the rule
    of CoNLL's `conlleval`: one begins at `B-` (or `S-`, `U-`), and wherever the type changes or the word before is
    outside; it ends before the next, and after `E-`, `L-`, `S-`, `U-`.

    This holds for IOB1, BIO, BIOES and BIOUL alike, and gives every sequence a meaning, well-formed or not.
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
    A tag for each of `length` words in the BIOUL scheme (the first, inner and last word of an entity, or a unit of one
    word), from spans that do not overlap.
    """
    tags = ["O"] * length
    for label, first, last in spans:
        prefixes: Sequence[str] = "U" if first == last else ["B", *"I" * (last - first - 1), "L"]
        tags[first : last + 1] = [f"{prefix}-{label}" for prefix in prefixes]
    return tags
