"""
Texts with labelled spans, in the formats of labelling tools: Label Studio, doccano, Prodigy,
spaCy and brat.

A reader of a format makes an `_Annotation` of each text and annotator. What all formats have in
common is in `_ToolExport`: which spans are right, and which annotation of a text is used.
"""

import json
import logging
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from elmo_tasks.files.json_files import first_json_line, read_json
from elmo_tasks.files.lines import is_cell, located, numbered_lines, text_of_file
from elmo_tasks.text import located_sentences
from elmo_tasks.text.formats import format_of
from elmo_tasks.text.tags import spans_to_bioul

__all__ = ["LabelOptions", "LabelledText", "labelled_texts", "tagged_sentences"]

logger = logging.getLogger(__name__)

MarkedSpan = tuple[str, int, int]
"""A label, and the offsets of its first character and of the one after its last."""

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".spacy")
_HINT = "skip_bad_spans leaves such spans out"


@dataclass(frozen=True)
class LabelOptions:
    """How an export is read: see `NerReader`."""

    text_column: str = "text"
    from_name: str | None = None
    skip_bad_spans: bool = False


@dataclass(frozen=True)
class LabelledText:
    """
    A text and its place in the file or folder. `spans` is `None` if nobody has labelled the text,
    or has accepted its labels.
    """

    place: int | str
    text: str
    spans: list[MarkedSpan] | None


@dataclass(frozen=True)
class _Mark:
    """A label as a tool has saved it, some tools with the marked characters."""

    label: str
    start: int
    end: int
    marked: str | None = None


@dataclass(frozen=True)
class _Annotation:
    """What one annotator has marked in a text."""

    labelled: LabelledText
    is_ground_truth: bool = False
    may_be_unfinished: bool = False


def labelled_texts(path: str, options: LabelOptions) -> list[LabelledText] | None:
    """
    The texts of a file or a folder, each once, or `None` if it is not in the format of a labelling
    tool. A folder has the files of brat, or exports of several annotators.
    """
    export = _ToolExport(Path(path), options)
    annotations = export.annotations()
    if annotations is None:
        return None
    return export.texts(annotations)


class _ToolExport:
    """A file or a folder, and what is counted while it is read."""

    def __init__(self, path: Path, options: LabelOptions) -> None:
        self.path = path
        self.options = options
        self.groups: set[str] = set()
        """The groups of labels of Label Studio, by `from_name`."""
        self.n_spans = 0
        self.n_skipped = 0
        self.skipped_example = ""
        """Why the first of the spans that are left out is wrong."""

    def annotations(self) -> Iterable[_Annotation] | None:
        if not self.path.is_dir():
            read = _READERS.get(format_of(self.path))
            if read is None:
                return None
            return read(self, self.path)
        if any(self.path.rglob("*.ann")):
            return _brat(self, self.path)
        files = [file for file in self.path.rglob("*") if file.suffix.lower() in _SUFFIXES]
        if not files:
            return None
        return chain.from_iterable(map(self._annotations_in, sorted(files)))

    def _annotations_in(self, file: Path) -> Iterable[_Annotation]:
        return _READERS[format_of(file)](self, file)

    def place(self, file: Path, place: int | str) -> int | str:
        """A place in a file as one in the export."""
        if file == self.path:
            return place
        line = f"line {place}" if isinstance(place, int) else place
        return f"{file.relative_to(self.path)}, {line}"

    def spans(self, text: str, marks: Iterable[_Mark]) -> list[MarkedSpan]:
        """The spans of a text, in its order. They do not overlap."""
        spans = []
        for mark in marks:
            span = self.span(text, mark)
            if span is not None:
                spans.append(span)
        return self.without_overlaps(spans)

    def span(self, text: str, mark: _Mark) -> MarkedSpan | None:
        """The span of a mark. `None`: it is left out."""
        self.n_spans += 1
        try:
            return _span_of(text, mark)
        except ValueError as error:
            self._skip(str(error))
            return None

    def without_overlaps(self, spans: list[MarkedSpan]) -> list[MarkedSpan]:
        spans = sorted(set(spans), key=lambda span: span[1:])
        kept = _longest_spans(spans)
        if len(kept) < len(spans):
            self._skip(_overlap_in(spans), len(spans) - len(kept))
        return kept

    def _skip(self, message: str, n_spans: int = 1) -> None:
        if not self.options.skip_bad_spans:
            raise ValueError(f"{message} ({_HINT})")
        self.n_skipped += n_spans
        self.skipped_example = self.skipped_example or message

    def texts(self, annotations: Iterable[_Annotation]) -> list[LabelledText]:
        """
        The annotated texts, each with one annotation. Equal texts are one: a part of the file for
        training would otherwise have texts of the part for evaluation.
        """
        by_text: defaultdict[str, list[_Annotation]] = defaultdict(list)
        for annotation in annotations:
            by_text[annotation.labelled.text].append(annotation)
        chosen = list(map(_chosen, by_text.values()))
        self._report_annotators(by_text.values())
        self._report_unfinished(chosen)
        self._report_groups()
        if self.n_skipped:
            message = "%s: %d of %d spans are left out; the first: %s"
            logger.warning(message, self.path, self.n_skipped, self.n_spans, self.skipped_example)
        return [annotation.labelled for annotation in chosen]

    def _report_annotators(self, annotations_of_texts: Collection[list[_Annotation]]) -> None:
        n_several = 0
        n_different = 0
        for annotations in annotations_of_texts:
            spans_of_annotators = [item.labelled.spans for item in _finished(annotations)]
            n_several += len(spans_of_annotators) > 1
            n_different += any(spans != spans_of_annotators[0] for spans in spans_of_annotators)
        if n_several:
            rule = "the ground truth is used, else the last one that has spans"
            message = "%s: %d of %d texts have several annotations, which differ in %d: %s"
            n_texts = len(annotations_of_texts)
            logger.warning(message, self.path, n_several, n_texts, n_different, rule)

    def _report_unfinished(self, chosen: list[_Annotation]) -> None:
        n_unfinished = sum(annotation.may_be_unfinished for annotation in chosen)
        if 2 * n_unfinished > len(chosen):
            rule = "so they are read as texts without names: export finished texts only"
            message = "%s: %d of %d texts have no spans, %s"
            logger.warning(message, self.path, n_unfinished, len(chosen), rule)

    def _report_groups(self) -> None:
        """Of labels in Label Studio, in which a project may have several controls for labels."""
        wanted = self.options.from_name
        groups = ", ".join(sorted(self.groups))
        if self.groups and wanted not in {None, *self.groups}:
            raise ValueError(f"expected {groups} as from_name, got {wanted!r}: {self.path}")
        if wanted is None and len(self.groups) > 1:
            rule = "from_name chooses one"
            logger.warning("%s: reads all groups of labels (%s): %s", self.path, groups, rule)


def _finished(annotations: list[_Annotation]) -> list[_Annotation]:
    return [annotation for annotation in annotations if annotation.labelled.spans is not None]


def _chosen(annotations: list[_Annotation]) -> _Annotation:
    """The annotation of a text that is used: see `_report_annotators`."""
    finished = _finished(annotations) or annotations
    for annotation in finished:
        if annotation.is_ground_truth:
            return annotation
    for annotation in reversed(finished):
        if annotation.labelled.spans:
            return annotation
    return finished[-1]


def _overlap_in(spans: list[MarkedSpan]) -> str:
    """The error of sorted spans, the first two that overlap."""
    names = ""
    for (label, start, end), (next_label, next_start, _) in pairwise(spans):
        if next_start < end:
            names = f"{label} ({start} to {end}) and {next_label}"
            break
    return f"expected spans that do not overlap, got {names}"


def _longest_spans(spans: list[MarkedSpan]) -> list[MarkedSpan]:
    """Of spans that overlap, the longest, or the first of equally long ones, as in spaCy."""
    kept: list[MarkedSpan] = []
    is_taken = bytearray(max((end for _, _, end in spans), default=0))
    for label, start, end in sorted(spans, key=lambda span: (span[1] - span[2], span[1])):
        # No span that was taken is shorter, so it has an end of this one.
        if not is_taken[start] and not is_taken[end - 1]:
            is_taken[start:end] = b"\1" * (end - start)
            kept.append((label, start, end))
    return sorted(kept, key=lambda span: span[1:])


def tagged_sentences(
    text: str, spans: list[MarkedSpan], language: str
) -> tuple[list[tuple[list[str], list[str]]], list[str]]:
    """
    The words of each sentence with their tags in the BIOUL scheme, and the spans that cut a word.
    Such a span is widened to whole words, or left out if its words have a label already. A sentence
    does not end inside a span. The spans are in the order of the text, and do not overlap.
    """
    sentences = located_sentences(text, language)
    words = list(chain.from_iterable(sentences))
    starts = [word.start for word in words]
    ends = [word.end for word in words]
    sentence_starts = {sentence[0].start for sentence in sentences[1:]}
    tags = ["O"] * len(words)
    cut = []
    for label, start, end in spans:
        # The words that share a character with the span.
        first_word = bisect_right(ends, start)
        end_word = bisect_left(starts, end)
        n_words = end_word - first_word
        if n_words < 1:
            continue
        if starts[first_word] < start or ends[end_word - 1] > end:
            cut.append(text[start:end])
        if set(tags[first_word:end_word]) == {"O"}:
            tags[first_word:end_word] = spans_to_bioul([(label, 0, n_words - 1)], n_words)
            sentence_starts -= set(starts[first_word + 1 : end_word])
    tagged: list[tuple[list[str], list[str]]] = []
    for word, tag in zip(words, tags, strict=True):
        if not tagged or word.start in sentence_starts:
            tagged.append(([], []))
        sentence_words, sentence_tags = tagged[-1]
        sentence_words.append(word.text)
        sentence_tags.append(tag)
    return tagged, cut


# From a mark to a span.


def _span_of(text: str, mark: _Mark) -> MarkedSpan:
    if not is_cell(mark.label):
        raise ValueError(f"expected a label in one line without tabs, got {mark.label!r:.60}")
    start = mark.start
    end = mark.end
    if mark.marked is not None:
        start, end = _offsets_of(text, mark, mark.marked)
    if not 0 <= start < end <= len(text):
        expected = f"a span of a text with {len(text)} characters"
        raise ValueError(f"expected {expected}, got {mark.start} to {mark.end}")
    return mark.label, start, end


def _offsets_of(text: str, mark: _Mark, marked: str) -> tuple[int, int]:
    """
    The offsets of the marked characters. Tools for browsers may count UTF-16, in which some
    characters are two, and others count both characters of a Windows line end as one.
    """
    for offset_from in (_from_characters, _from_utf16, _from_single_line_ends):
        start = offset_from(text, mark.start)
        end = offset_from(text, mark.end)
        # Label Studio writes line ends as `\n`, and brat as spaces.
        if text[start:end].split() == marked.replace("\\n", " ").split():
            return start, end
    expected = f"{marked!r:.60} from {mark.start} to {mark.end}"
    raise ValueError(f"expected {expected}, got {text[mark.start : mark.end]!r:.60}")


def _from_characters(text: str, offset: int) -> int:
    return offset


def _from_utf16(text: str, offset: int) -> int:
    return offset - bisect_right(_ends_of_pairs(text), offset)


def _from_single_line_ends(text: str, offset: int) -> int:
    return offset + bisect_left(_windows_line_ends(text), offset)


@lru_cache(maxsize=1)
def _ends_of_pairs(text: str) -> list[int]:
    """In UTF-16, the offsets after the characters that are two there."""
    ends = [match.end() for match in re.finditer("[^\0-\uffff]", text)]
    return [end + number for number, end in enumerate(ends, start=1)]


@lru_cache(maxsize=1)
def _windows_line_ends(text: str) -> list[int]:
    """The offsets of Windows line ends if each is counted as one character."""
    starts = [match.start() for match in re.finditer("\r\n", text)]
    return [start - number for number, start in enumerate(starts)]


def _mark_of(label: Any) -> _Mark:
    """A label of doccano, Prodigy or spaCy."""
    match label:
        case [int(start), int(end), str(name) | int(name), *_]:
            return _Mark(str(name), start, end)
        case {"start": int(start), "end": int(end), "label": str(name) | int(name)}:
            return _Mark(str(name), start, end)
        case {"start_offset": int(start), "end_offset": int(end), "label": str(name) | int(name)}:
            return _Mark(str(name), start, end)
    raise ValueError(f"expected [start, end, label] for each span, got {label!r:.100}")


# JSON, told by the keys of each text.


def _json(export: _ToolExport, file: Path) -> Iterator[_Annotation]:
    """Label Studio, doccano and Prodigy, and the pairs of a text and its entities of spaCy."""
    text_column = export.options.text_column
    for place, row in _json_rows(file):
        with located(file, place):
            if _is_pair(row):
                row = {text_column: row[0], **row[1]}
            if not isinstance(row, dict):
                raise ValueError(f"expected a text with its labels, got {row!r:.100}")
            form = _form_of(row)
            columns = row["data"] if form is _label_studio else row
            text = columns.get(text_column)
            if not isinstance(text, str):
                names = ", ".join(columns)
                raise ValueError(f"expected a text as {text_column!r} (text_column), got {names}")
            for annotator in form(export, row):
                spans = None
                if annotator.marks is not None:
                    spans = export.spans(text, annotator.marks)
                yield _Annotation(
                    LabelledText(export.place(file, place), text, spans),
                    is_ground_truth=annotator.is_ground_truth,
                    may_be_unfinished=annotator.may_be_empty and not spans,
                )


def _json_rows(file: Path) -> Iterator[tuple[int | str, Any]]:
    """The rows of JSON lines, of a list, or of an object of NER Annotator, with their places."""
    first_value = first_json_line(file)
    rows: Iterable[tuple[int | str, Any]]
    if isinstance(first_value, dict) or _is_pair(first_value):
        rows = _rows_of_lines(file)
    else:
        rows = _rows_of_list(file)
    for place, row in rows:
        if isinstance(row, dict) and {"annotations", "classes"} <= row.keys():
            for number, pair in enumerate(row["annotations"], start=1):
                # A text that was skipped is null.
                if pair is not None:
                    yield f"text {number}", pair
        else:
            yield place, row


def _rows_of_list(file: Path) -> Iterator[tuple[str, Any]]:
    content = read_json(file)
    rows = content if isinstance(content, list) else [content]
    for number, row in enumerate(rows, start=1):
        yield f"text {number}", row


def _rows_of_lines(file: Path) -> Iterator[tuple[int, Any]]:
    for number, line in numbered_lines(file):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            message = f"expected JSON in each line, got {line[:60]!r}: {file}, line {number}"
            raise ValueError(message) from None
        yield number, row


def _is_pair(row: Any) -> bool:
    """Whether a row is a text and its entities, as in spaCy's examples."""
    return isinstance(row, list) and list(map(type, row)) == [str, dict]


@dataclass(frozen=True)
class _AnnotatorMarks:
    """The marks of one annotator. `None`: they were not accepted."""

    marks: Iterable[_Mark] | None
    is_ground_truth: bool = False
    may_be_empty: bool = False
    """Whether the tool also exports texts that nobody has looked at."""


_Form = Callable[[_ToolExport, dict[str, Any]], Iterable[_AnnotatorMarks]]


def _form_of(row: dict[str, Any]) -> _Form:
    if "annotations" in row and isinstance(row.get("data"), dict):
        return _label_studio
    for key, form in _FORMS.items():
        if key in row:
            return form
    tools = "Label Studio, doccano or Prodigy"
    keys = ", ".join(map(str, row))
    raise ValueError(f"expected a text of {tools}, got the keys {keys:.200}")


def _label_studio(export: _ToolExport, row: dict[str, Any]) -> Iterator[_AnnotatorMarks]:
    annotations = row["annotations"]
    finished = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    if not finished:
        yield _AnnotatorMarks(None)
    for annotation in finished:
        groups: defaultdict[str, list[Any]] = defaultdict(list)
        for item in annotation["result"]:
            groups[str(item.get("from_name"))].append(item.get("value", {}))
        is_ground_truth = bool(annotation.get("ground_truth"))
        yield _AnnotatorMarks(_label_studio_marks(export, groups), is_ground_truth)


def _label_studio_min(export: _ToolExport, row: dict[str, Any]) -> Iterator[_AnnotatorMarks]:
    groups: dict[str, list[Any]] = {}
    for name, values in row.items():
        if isinstance(values, list):
            groups[name] = [value for value in values if isinstance(value, dict)]
    yield _AnnotatorMarks(_label_studio_marks(export, groups))


def _label_studio_marks(export: _ToolExport, groups: dict[str, list[Any]]) -> list[_Mark]:
    marks = []
    for name, values in groups.items():
        # Other values are relations, or choices for the whole text.
        labelled = [value for value in values if "labels" in value]
        if labelled:
            export.groups.add(name)
        if export.options.from_name not in (None, name):
            continue
        for value in labelled:
            start = value["start"]
            end = value["end"]
            if not isinstance(start, int) or not isinstance(end, int):
                expected = "numbers as start and end, as of plain text"
                raise ValueError(f"expected {expected}, got {start!r}")
            for label in value["labels"]:
                marks.append(_Mark(label, start, end, value.get("text")))
    return marks


def _prodigy(export: _ToolExport, row: dict[str, Any]) -> Iterator[_AnnotatorMarks]:
    if row.get("answer", "accept") == "accept":
        yield _AnnotatorMarks(list(map(_mark_of, row.get("spans") or ())))
    else:
        yield _AnnotatorMarks(None)


def _doccano(export: _ToolExport, row: dict[str, Any]) -> Iterator[_AnnotatorMarks]:
    """Also of earlier releases, and spaCy's pairs."""
    for key in ("entities", "annotations", "label", "labels"):
        if row.get(key):
            yield _AnnotatorMarks(list(map(_mark_of, row[key])), may_be_empty=True)
            return
    yield _AnnotatorMarks([], may_be_empty=True)


# By the first of these keys that a text has.
_FORMS: dict[str, _Form] = {
    "annotator": _label_studio_min,
    "answer": _prodigy,
    "spans": _prodigy,
    "entities": _doccano,
    "annotations": _doccano,
    "label": _doccano,
    "labels": _doccano,
}


# Other formats.


def _spacy(export: _ToolExport, file: Path) -> Iterator[_Annotation]:
    import spacy
    from spacy.tokens import DocBin

    with located(file, "documents of spaCy"):
        docs = list(DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab))
    for number, doc in enumerate(docs, start=1):
        spans = None
        if doc.has_annotation("ENT_IOB"):
            marks = [_Mark(name.label_, name.start_char, name.end_char) for name in doc.ents]
            spans = export.spans(doc.text, marks)
        place = export.place(file, f"document {number}")
        yield _Annotation(LabelledText(place, doc.text, spans))


def _brat(export: _ToolExport, path: Path) -> Iterator[_Annotation]:
    folder = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path.with_suffix(".txt")]
    for file in files:
        text = text_of_file(file)
        ann_file = file.with_suffix(".ann")
        name = str(file.relative_to(folder))
        spans = None
        if ann_file.exists():
            all_spans = list(_brat_spans(export, text, ann_file))
            with located(export.path, name):
                spans = export.without_overlaps(all_spans)
        yield _Annotation(LabelledText(name, text, spans))


def _brat_spans(export: _ToolExport, text: str, ann_file: Path) -> Iterator[MarkedSpan]:
    for number, line in numbered_lines(ann_file):
        # Other lines are relations, events and notes.
        if line.startswith("T"):
            with located(ann_file, number):
                span = export.span(text, _brat_mark(line))
            if span is not None:
                yield span


def _brat_mark(line: str) -> _Mark:
    _, mark, marked = line.split("\t", 2)
    label, offsets = mark.split(" ", 1)
    # A span over a line end has two offsets for each line.
    numbers = list(map(int, re.findall(r"\d+", offsets)))
    return _Mark(label, numbers[0], numbers[-1], marked)


_READERS: dict[str, Callable[[_ToolExport, Path], Iterable[_Annotation]]] = {
    "json": _json,
    "jsonl": _json,
    "documents of spaCy": _spacy,
    "annotations of brat": _brat,
}
