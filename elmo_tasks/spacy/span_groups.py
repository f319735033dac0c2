"""Groups of spans in spaCy's documents that stay right if tokens are merged or split."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from spacy.tokens import Doc, Span, SpanGroup

__all__ = ["CHAINS", "PREDICATES", "groups_in", "set_groups", "set_spans", "tokens_at"]

PREDICATES = "elmo_srl"
"""The attribute of a verb with its roles: see `set_groups`."""
CHAINS = "elmo_coref"
"""The attribute of the first mention of a chain with all of them."""


class _TextSpans(SpanGroup):
    """Finds its spans by their characters: spaCy does not renumber the tokens in groups."""

    def __iter__(self) -> Iterator[Span]:
        return iter(_spans(self.doc, 0, self.attrs["places"]))

    def __getitem__(self, index: int) -> Span:
        return list(self)[index]

    def to_bytes(self) -> bytes:
        return SpanGroup(self.doc, name=self.name, attrs=self.attrs, spans=list(self)).to_bytes()


def set_groups(
    doc: Doc, attribute: str, prefix: str, groups: Sequence[tuple[Any, Sequence[Any]]]
) -> None:
    """
    Replaces the groups of a document, each with a head: in `doc.spans`, with names that have a
    prefix and a number, and in an attribute of each head, as the offsets of its spans relative to
    its own, which `Doc.from_docs` keeps.
    """
    for name in [name for name in doc.spans if name.startswith(prefix)]:
        del doc.spans[name]
    for key in [key for key in doc.user_data if key[1:2] == (attribute,)]:
        del doc.user_data[key]
    for number, (head, labeled_spans) in enumerate(groups, start=1):
        spans = set_spans(doc, f"{prefix}{number}", labeled_spans)
        owner = tokens_at(doc, head["start"], head["end"])
        origin = owner.start_char
        offsets = []
        for span in spans:
            offsets.append((span.start_char - origin, span.end_char - origin, span.label_))
        owner._.set(attribute, offsets)


def set_spans(doc: Doc, name: str, labeled_spans: Sequence[Any]) -> list[Span]:
    """Sets `doc.spans[name]` to the tokens of spans with labels, and returns them."""
    spans = [tokens_at(doc, span["start"], span["end"], span["label"]) for span in labeled_spans]
    offsets = [(span.start_char, span.end_char, span.label_) for span in spans]
    doc.spans[name] = _TextSpans(doc, name=name, attrs={"places": offsets}, spans=spans)
    return spans


def groups_in(
    part: Doc | Span, attribute: str, label: str = "", *, by_head: bool = True
) -> Iterator[tuple[Span, list[Span]]]:
    """
    The heads, with a label, and the spans that a document has in an attribute, in the order of the
    text. For a `Span`, only groups with their head in it, or if `by_head` is false, with any of
    their spans in it.
    """
    doc = part.doc
    user_data: dict[Any, Any] = doc.user_data
    n_characters = doc[-1].idx + len(doc[-1]) if len(doc) else 0
    for start, end in sorted(key[2:] for key in user_data if key[1:2] == (attribute,)):
        # `Span.as_doc(copy_user_data=True)` also copies what is outside the span.
        if start < 0 or end > n_characters:
            continue
        places = user_data["._.", attribute, start, end]
        offsets = [(start, end)]
        if not by_head:
            offsets = [(start + first, start + last) for first, last, _ in places]
        if isinstance(part, Doc) or _any_in(offsets, part.start_char, part.end_char):
            yield tokens_at(doc, start, end, label), _spans(doc, start, places)


def _any_in(offsets: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    return any(first <= start and end <= last for start, end in offsets)


def tokens_at(doc: Doc, start: int, end: int, label: str = "") -> Span:
    """The tokens with these characters."""
    # displaCy does not escape labels.
    (span,) = _spans(doc, 0, [(start, end, escape(label))])
    return span


def _spans(doc: Doc, first: int, places: Sequence[tuple[int, int, str]]) -> list[Span]:
    spans = [
        doc.char_span(first + start, first + end, label, alignment_mode="expand")
        for start, end, label in places
    ]
    return [span for span in spans if span is not None]
