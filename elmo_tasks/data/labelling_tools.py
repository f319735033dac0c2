"""
The files of labelling tools: Label Studio, doccano, Prodigy, spaCy and brat.

Each format has a function that yields an `Annotation` for each text and annotator. Whether the
marks are right is checked in `elmo_tasks.data.labelled_texts`.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from elmo_tasks.data.marked_spans import Mark
from elmo_tasks.files.json_files import first_json_line, read_json
from elmo_tasks.files.lines import located, numbered_lines, text_of_file
from elmo_tasks.text.formats import format_of

__all__ = ["Annotation", "LabelOptions", "read_annotations"]

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".spacy")


@dataclass(frozen=True)
class LabelOptions:
    """How an export is read: see `NerReader`."""

    text_column: str = "text"
    from_name: str | None = None
    skip_bad_spans: bool = False


@dataclass(frozen=True)
class Marking:
    """
    What one annotator has marked in a text.

    # Parameters

    marks : `list[Mark]`, optional
        `None` if the text was skipped or rejected, or nobody has looked at it.
    groups : `tuple[str, ...]`
        The groups that the labels are in, by `from_name`, also those that are not read.
    is_ground_truth : `bool`
        Whether the annotation was chosen among those of several annotators.
    may_be_unfinished : `bool`
        Whether the tool would also export a text without marks that nobody has looked at.
    """

    marks: list[Mark] | None
    groups: tuple[str, ...] = ()
    is_ground_truth: bool = False
    may_be_unfinished: bool = False


@dataclass(frozen=True)
class Annotation:
    """A text with the marks of one annotator, and where it is."""

    file: Path
    place: int | str
    """A line, or another place in the file."""
    text: str
    marking: Marking


def read_annotations(path: Path, options: LabelOptions) -> Iterable[Annotation] | None:
    """
    The annotations of a file or a folder, or `None` if it is not in the format of a labelling tool.
    """
    if not path.is_dir():
        read = _READERS.get(format_of(path))
        if read is None:
            return None
        return read(path, options)
    if any(path.rglob("*.ann")):
        return _brat(path, options)
    files = [file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES]
    if not files:
        return None
    return chain.from_iterable(_READERS[format_of(file)](file, options) for file in sorted(files))


# JSON. The form of a text is recognised by its keys.


def _json(file: Path, options: LabelOptions) -> Iterator[Annotation]:
    """Label Studio, doccano and Prodigy, and the pairs of a text and its entities of spaCy."""
    for place, row in _json_rows(file):
        with located(file, place):
            if _is_pair(row):
                row = {options.text_column: row[0], **row[1]}
            if not isinstance(row, dict):
                raise ValueError(f"expected a text with its labels, got {row!r:.100}")
            read_marks = _form_of(row)
            # Label Studio has the text and its other columns in `data`.
            columns = row["data"] if read_marks is _label_studio else row
            text = _text_of(columns, options)
            markings = list(read_marks(row, options))
        for marking in markings:
            yield Annotation(file, place, text, marking)


def _text_of(columns: dict[str, Any], options: LabelOptions) -> str:
    text = columns.get(options.text_column)
    if not isinstance(text, str):
        names = ", ".join(columns)
        expected = f"a text as {options.text_column!r} (text_column)"
        raise ValueError(f"expected {expected}, got {names}")
    return text


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


_Form = Callable[[dict[str, Any], LabelOptions], Iterable[Marking]]


def _form_of(row: dict[str, Any]) -> _Form:
    if "annotations" in row and isinstance(row.get("data"), dict):
        return _label_studio
    for key, form in _FORMS.items():
        if key in row:
            return form
    tools = "Label Studio, doccano or Prodigy"
    keys = ", ".join(map(str, row))
    raise ValueError(f"expected a text of {tools}, got the keys {keys:.200}")


def _label_studio(row: dict[str, Any], options: LabelOptions) -> Iterator[Marking]:
    annotations = row["annotations"]
    finished = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    if not finished:
        yield Marking(None)
    for annotation in finished:
        groups: defaultdict[str, list[Any]] = defaultdict(list)
        for item in annotation["result"]:
            groups[str(item.get("from_name"))].append(item.get("value", {}))
        is_ground_truth = bool(annotation.get("ground_truth"))
        yield _marks_of_groups(groups, options.from_name, is_ground_truth=is_ground_truth)


def _label_studio_min(row: dict[str, Any], options: LabelOptions) -> Iterator[Marking]:
    groups: dict[str, list[Any]] = {}
    for name, values in row.items():
        if isinstance(values, list):
            groups[name] = [value for value in values if isinstance(value, dict)]
    yield _marks_of_groups(groups, options.from_name)


def _marks_of_groups(
    groups: dict[str, list[Any]], from_name: str | None, *, is_ground_truth: bool = False
) -> Marking:
    marks = []
    names = []
    for name, values in groups.items():
        # Other values are relations, or choices for the whole text.
        labelled = [value for value in values if "labels" in value]
        if labelled:
            names.append(name)
        if from_name not in (None, name):
            continue
        for value in labelled:
            start = value["start"]
            end = value["end"]
            if not isinstance(start, int) or not isinstance(end, int):
                expected = "numbers as start and end, as of plain text"
                raise ValueError(f"expected {expected}, got {start!r}")
            for label in value["labels"]:
                marks.append(Mark(label, start, end, value.get("text")))
    return Marking(marks, tuple(names), is_ground_truth)


def _prodigy(row: dict[str, Any], options: LabelOptions) -> Iterator[Marking]:
    if row.get("answer", "accept") == "accept":
        yield Marking(list(map(_mark_of, row.get("spans") or ())))
    else:
        yield Marking(None)


def _doccano(row: dict[str, Any], options: LabelOptions) -> Iterator[Marking]:
    """doccano, also of earlier releases, and spaCy's pairs of a text and its entities."""
    labels: list[Any] = []
    for key in ("entities", "annotations", "label", "labels"):
        if row.get(key):
            labels = row[key]
            break
    yield Marking(list(map(_mark_of, labels)), may_be_unfinished=True)


def _mark_of(label: Any) -> Mark:
    """A label of doccano, Prodigy or spaCy."""
    match label:
        case [int(start), int(end), str(name) | int(name), *_]:
            return Mark(str(name), start, end)
        case {"start": int(start), "end": int(end), "label": str(name) | int(name)}:
            return Mark(str(name), start, end)
        case {"start_offset": int(start), "end_offset": int(end), "label": str(name) | int(name)}:
            return Mark(str(name), start, end)
    raise ValueError(f"expected [start, end, label] for each span, got {label!r:.100}")


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


def _spacy(file: Path, options: LabelOptions) -> Iterator[Annotation]:
    import spacy
    from spacy.tokens import DocBin

    with located(file, "documents of spaCy"):
        docs = list(DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab))
    for number, doc in enumerate(docs, start=1):
        marks = None
        if doc.has_annotation("ENT_IOB"):
            marks = [Mark(name.label_, name.start_char, name.end_char) for name in doc.ents]
        yield Annotation(file, f"document {number}", doc.text, Marking(marks))


def _brat(path: Path, options: LabelOptions) -> Iterator[Annotation]:
    folder = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path.with_suffix(".txt")]
    for file in files:
        text = text_of_file(file)
        ann_file = file.with_suffix(".ann")
        marks = list(_brat_marks(ann_file)) if ann_file.exists() else None
        yield Annotation(path, str(file.relative_to(folder)), text, Marking(marks))


def _brat_marks(ann_file: Path) -> Iterator[Mark]:
    for number, line in numbered_lines(ann_file):
        # Other lines are relations, events and notes.
        if not line.startswith("T"):
            continue
        with located(ann_file, number):
            _, mark, marked = line.split("\t", 2)
            label, offsets = mark.split(" ", 1)
            # A span over a line end has two offsets for each line.
            numbers = list(map(int, re.findall(r"\d+", offsets)))
            yield Mark(label, numbers[0], numbers[-1], marked, (ann_file, number))


_READERS: dict[str, Callable[[Path, LabelOptions], Iterable[Annotation]]] = {
    "json": _json,
    "jsonl": _json,
    "documents of spaCy": _spacy,
    "annotations of brat": _brat,
}
