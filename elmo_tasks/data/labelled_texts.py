"""Texts with labelled spans, in the formats of labelling tools: Label Studio, doccano, Prodigy, spaCy and brat."""

import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.files.json_files import json_lines, read_json
from elmo_tasks.tags import spans_to_bioul
from elmo_tasks.text import located_sentences
from elmo_tasks.text.formats import format_of
from elmo_tasks.text.lines import located, numbered_lines, text_of_file

__all__ = ["LabelledText", "labelled_texts", "tagged_sentences"]

logger = logging.getLogger(__name__)

LabelledSpan = tuple[str, int, int]
"""A label, and the offsets of its first character and of the one after its last."""


class LabelledText(NamedTuple):
    """A text and its place in the file or folder. `spans` is `None` if nobody has labelled it, or has accepted it."""

    place: int | str
    text: str
    spans: list[LabelledSpan] | None


def labelled_texts(path: str, text_column: str) -> Iterator[LabelledText] | None:
    """The texts of a file or a folder, or `None` if it is not in the format of a labelling tool."""
    files = [path] if Path(path).is_file() else Path(path).rglob("*.ann")
    read = next((_READERS.get(format_of(file)) for file in files), None)
    return None if read is None else read(Path(path), text_column)


def tagged_sentences(
    text: str, spans: list[LabelledSpan], language: str
) -> tuple[list[tuple[list[str], list[str]]], list[str]]:
    """
    The words of each sentence with their tags in the BIOUL scheme, and the spans that cut a word. Such a span is
    widened to whole words, or left out if its words have a label already. A sentence does not end inside a span.
    """
    spans = sorted(set(spans), key=lambda span: span[1:])
    for (label, start, end), (other, other_start, _) in pairwise(spans):
        if other_start < end:
            raise ValueError(f"expected spans that do not overlap, got {label} ({start} to {end}) and {other}")
    sentences = located_sentences(text, language)
    words = list(chain.from_iterable(sentences))
    starts, ends = [word.start for word in words], [word.end for word in words]
    breaks = {sentence[0].start for sentence in sentences[1:]}
    tags, cut = ["O"] * len(words), []
    for label, start, end in spans:
        if not 0 <= start < end <= len(text):
            raise ValueError(f"expected a span of a text with {len(text)} characters, got {start} to {end}")
        # The words that share a character with the span.
        first, stop = bisect_right(ends, start), bisect_left(starts, end)
        is_cut = first < stop and (starts[first] < start or ends[stop - 1] > end)
        if is_cut:
            cut.append(text[start:end])
        if first < stop and set(tags[first:stop]) == {"O"}:
            tags[first:stop] = spans_to_bioul([(label, 0, stop - first - 1)], stop - first)
            breaks -= set(starts[first + 1 : stop])
    rows = zip(words, tags, strict=True)
    bounds = [0, *(number for number, start in enumerate(starts) if start in breaks), len(words)]
    pieces = [list(islice(rows, end - start)) for start, end in pairwise(bounds) if end > start]
    return [([word.text for word, _ in piece], [tag for _, tag in piece]) for piece in pieces], cut


def _span(text: str, label: str, start: int, end: int, marked: str | None) -> LabelledSpan:
    """A span of a format that also has its `marked` characters: offsets of JavaScript may count UTF-16."""
    if marked is None or _is_same(text[start:end], marked):
        return label, start, end
    units = text.encode("utf-16-le", "surrogatepass")
    first, last = (len(units[: 2 * offset].decode("utf-16-le", "replace")) for offset in (start, end))
    if not _is_same(text[first:last], marked):
        raise ValueError(f"expected {marked!r:.60} from {start} to {end}, got {text[start:end]!r:.60}")
    return label, first, last


def _is_same(text: str, marked: str) -> bool:
    # Label Studio writes line ends as `\n`, and brat as spaces.
    return text.split() == marked.replace("\\n", " ").split()


def _json_texts(path: Path, text_column: str) -> Iterator[LabelledText]:
    """Label Studio, doccano and Prodigy, which are told by the keys of each text."""
    first = next(line for _, line in numbered_lines(path) if line.strip())
    is_list = first.startswith("[")
    rows = enumerate(read_json(path), start=1) if is_list else json_lines(path)
    n_texts, n_unfinished = 0, 0
    for number, row in rows:
        place = f"text {number}" if is_list else number
        with located(path, place):
            spans_of = next((spans_of for key, spans_of in _SPANS_OF.items() if key in row), None)
            if spans_of is None:
                found = ", ".join(map(str, row))
                raise ValueError(f"expected a text of Label Studio, doccano or Prodigy, got the keys {found:.200}")
            columns = row["data"] if "annotations" in row else row
            if not isinstance(text := columns.get(text_column), str):
                raise ValueError(f"expected a text as {text_column!r} (text_column), got {', '.join(columns)}")
            spans = spans_of(text, row)
        n_texts += 1
        n_unfinished += spans == [] and spans_of in (_doccano, _doccano_with_relations)
        yield LabelledText(place, text, spans)
    if 2 * n_unfinished > n_texts:
        message = (
            "%s: %d of %d texts have no spans, so they are read as texts without names: export finished texts only"
        )
        logger.warning(message, path, n_unfinished, n_texts)


def _label_studio(text: str, row: dict[str, Any]) -> list[LabelledSpan] | None:
    """Of several annotators, the one whose result is the ground truth, or else the last one."""
    finished = [each for each in row["annotations"] if not each.get("was_cancelled")]
    if not finished:
        return None
    chosen = next((each for each in finished if each.get("ground_truth")), finished[-1])
    return _label_studio_spans(text, [each.get("value", {}) for each in chosen["result"]])


def _label_studio_min(text: str, row: dict[str, Any]) -> list[LabelledSpan]:
    values = chain.from_iterable(value for value in row.values() if isinstance(value, list))
    return _label_studio_spans(text, [value for value in values if isinstance(value, dict)])


def _label_studio_spans(text: str, values: list[dict[str, Any]]) -> list[LabelledSpan]:
    spans = []
    for value in values:
        # Other values are relations, or choices for the whole text.
        for label in value.get("labels", ()):
            spans.append(_span(text, label, value["start"], value["end"], value.get("text")))
    return spans


def _prodigy(text: str, row: dict[str, Any]) -> list[LabelledSpan] | None:
    if row.get("answer", "accept") != "accept":
        return None
    return [(span["label"], span["start"], span["end"]) for span in row.get("spans", ())]


def _doccano(text: str, row: dict[str, Any]) -> list[LabelledSpan]:
    return [(label, start, end) for start, end, label in row.get("label") or row.get("labels") or ()]


def _doccano_with_relations(text: str, row: dict[str, Any]) -> list[LabelledSpan]:
    return [(span["label"], span["start_offset"], span["end_offset"]) for span in row["entities"]]


# By the first of these keys that a text has.
_SPANS_OF: dict[str, Callable[[str, dict[str, Any]], list[LabelledSpan] | None]] = {
    "annotations": _label_studio,
    "annotator": _label_studio_min,
    "answer": _prodigy,
    "spans": _prodigy,
    "entities": _doccano_with_relations,
    "label": _doccano,
    "labels": _doccano,
}


def _spacy_texts(path: Path, text_column: str) -> Iterator[LabelledText]:
    import spacy
    from spacy.tokens import DocBin

    for number, doc in enumerate(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab), start=1):
        spans = [(entity.label_, entity.start_char, entity.end_char) for entity in doc.ents]
        yield LabelledText(f"document {number}", doc.text, spans if doc.has_annotation("ENT_IOB") else None)


def _brat_texts(path: Path, text_column: str) -> Iterator[LabelledText]:
    for file in sorted(path.rglob("*.txt")):
        text, marks, spans = text_of_file(file), file.with_suffix(".ann"), []
        for number, line in numbered_lines(marks) if marks.exists() else ():
            # Other lines are relations, events and notes.
            if line.startswith("T"):
                with located(marks, number):
                    _, mark, marked = line.split("\t", 2)
                    label, places = mark.split(" ", 1)
                    # A span over a line end has a part for each line.
                    start, *_, end = map(int, re.findall(r"\d+", places))
                    spans.append(_span(text, label, start, end, marked))
        yield LabelledText(str(file.relative_to(path)), text, spans if marks.exists() else None)


_READERS: dict[str, Callable[[Path, str], Iterator[LabelledText]]] = {
    "json": _json_texts,
    "jsonl": _json_texts,
    "documents of spaCy": _spacy_texts,
    "annotations of brat": _brat_texts,
}
