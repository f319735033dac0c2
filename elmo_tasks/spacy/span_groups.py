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
    for name in list(doc.spans):
        if name.startswith(prefix):
            del doc.spans[name]
    for key in list(doc.user_data):
        if _is_of_attribute(key, attribute):
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
    text: Doc | Span, attribute: str, label: str = "", *, by_head: bool = True
) -> Iterator[tuple[Span, list[Span]]]:
    """
    The heads, with a label, and the spans that a document has in an attribute, in the order of the
    text. For a `Span`, only groups with their head in it, or if `by_head` is false, with any of
    their spans in it.
    """
    doc = text.doc
    user_data: dict[Any, Any] = doc.user_data
    n_characters = doc[-1].idx + len(doc[-1]) if len(doc) else 0
    heads = [key[2:] for key in user_data if _is_of_attribute(key, attribute)]
    for start, end in sorted(heads):
        # `Span.as_doc(copy_user_data=True)` also copies what is outside the span.
        if start < 0 or end > n_characters:
            continue
        labeled_offsets = user_data["._.", attribute, start, end]
        offsets = [(start, end)]
        if not by_head:
            offsets = [(start + left, start + right) for left, right, _ in labeled_offsets]
        if isinstance(text, Doc) or _any_in(text, offsets):
            yield tokens_at(doc, start, end, label), _spans(doc, start, labeled_offsets)


def _is_of_attribute(key: Any, attribute: str) -> bool:
    """Whether a key of user data, `("._.", attribute, start, end)`, is of this attribute."""
    return bool(key[1:2] == (attribute,))


def _any_in(span: Span, offsets: Sequence[tuple[int, int]]) -> bool:
    return any(span.start_char <= start and end <= span.end_char for start, end in offsets)


def tokens_at(doc: Doc, start: int, end: int, label: str = "") -> Span:
    """The tokens with these characters."""
    # displaCy does not escape labels.
    (span,) = _spans(doc, 0, [(start, end, escape(label))])
    return span


def _spans(doc: Doc, origin: int, labeled_offsets: Sequence[tuple[int, int, str]]) -> list[Span]:
    """The spans at offsets relative to `origin`."""
    spans = []
    for start, end, label in labeled_offsets:
        span = doc.char_span(origin + start, origin + end, label, alignment_mode="expand")
        if span is not None:
            spans.append(span)
    return spans
