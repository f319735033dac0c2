"""
Texts with labelled spans, from the files of labelling tools.

What all tools have in common is here: which spans are right, and which annotation of a text is
used.
"""

import logging
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from elmo_tasks.data.labelling_tools import Annotation, LabelOptions, read_annotations
from elmo_tasks.data.marked_spans import (
    Mark,
    MarkedSpan,
    first_overlap,
    longest_spans,
    marked_span,
)
from elmo_tasks.files.lines import located
from elmo_tasks.text import located_sentences
from elmo_tasks.text.tags import spans_to_bioul

__all__ = ["LabelledText", "labelled_texts", "tagged_sentences"]

logger = logging.getLogger(__name__)

_HINT = "skip_bad_spans leaves such spans out"


@dataclass(frozen=True)
class LabelledText:
    """
    A text and its place in the file or folder. `spans` is `None` if nobody has labelled the text,
    or if its labels were not accepted.
    """

    place: int | str
    text: str
    spans: list[MarkedSpan] | None


@dataclass(frozen=True)
class _Candidate:
    """The labelled text of one annotator."""

    labelled: LabelledText
    is_ground_truth: bool
    may_be_unfinished: bool


def labelled_texts(path: str, options: LabelOptions) -> list[LabelledText] | None:
    """
    The texts of a file or a folder, each once, or `None` if it is not in the format of a labelling
    tool. A folder has the files of brat, or exports of several annotators.

    Equal texts are one: a part of the file for training would otherwise have texts of the part for
    evaluation.
    """
    annotations = read_annotations(Path(path), options)
    if annotations is None:
        return None
    export = _Export(Path(path), options)
    by_text: defaultdict[str, list[_Candidate]] = defaultdict(list)
    for annotation in annotations:
        by_text[annotation.text].append(export.candidate(annotation))
    export.report_groups()
    chosen = list(map(_chosen, by_text.values()))
    _report_annotators(path, by_text.values())
    _report_unfinished(path, chosen)
    export.report_skipped()
    return [candidate.labelled for candidate in chosen]


class _Export:
    """Checks the marks of a file or a folder, and counts what it leaves out."""

    def __init__(self, path: Path, options: LabelOptions) -> None:
        self._path = path
        self._options = options
        self._groups: set[str] = set()
        self._n_spans = 0
        self._n_skipped = 0
        self._skipped_example = ""
        """Why the first of the spans that are left out is wrong."""

    def candidate(self, annotation: Annotation) -> _Candidate:
        marking = annotation.marking
        self._groups.update(marking.groups)
        spans = None
        if marking.marks is not None:
            spans = self._spans(annotation, marking.marks)
        return _Candidate(
            LabelledText(self._place(annotation), annotation.text, spans),
            is_ground_truth=marking.is_ground_truth,
            may_be_unfinished=marking.may_be_unfinished and not spans,
        )

    def _place(self, annotation: Annotation) -> int | str:
        """The place in the file as one in the export."""
        place = annotation.place
        if annotation.file == self._path:
            return place
        line = f"line {place}" if isinstance(place, int) else place
        return f"{annotation.file.relative_to(self._path)}, {line}"

    def _spans(self, annotation: Annotation, marks: list[Mark]) -> list[MarkedSpan]:
        """The spans of a text, in its order. They do not overlap."""
        in_file = (annotation.file, annotation.place)
        spans = []
        for mark in marks:
            self._n_spans += 1
            with located(*(mark.line or in_file)):
                try:
                    spans.append(marked_span(annotation.text, mark))
                except ValueError as error:
                    self._skip(str(error))
        with located(*in_file):
            # Without repetitions. Spans at the same place stay in the order of the file.
            distinct_spans = dict.fromkeys(spans)
            return self._without_overlaps(sorted(distinct_spans, key=lambda span: span[1:]))

    def _without_overlaps(self, spans: list[MarkedSpan]) -> list[MarkedSpan]:
        overlap = first_overlap(spans)
        if overlap is None:
            return spans
        kept = longest_spans(spans)
        names = " and ".join(f"{label} ({start} to {end})" for label, start, end in overlap)
        message = f"expected spans that do not overlap, got {names}"
        self._skip(message, len(spans) - len(kept))
        return kept

    def _skip(self, message: str, n_spans: int = 1) -> None:
        if not self._options.skip_bad_spans:
            raise ValueError(f"{message} ({_HINT})")
        self._n_skipped += n_spans
        self._skipped_example = self._skipped_example or message

    def report_groups(self) -> None:
        """
        Warns if a project of Label Studio has several groups of labels; raises an error if none of
        them is `from_name`.
        """
        wanted = self._options.from_name
        groups = ", ".join(sorted(self._groups))
        if self._groups and wanted not in {None, *self._groups}:
            raise ValueError(f"expected {groups} as from_name, got {wanted!r}: {self._path}")
        if wanted is None and len(self._groups) > 1:
            rule = "from_name chooses one"
            logger.warning("%s: reads all groups of labels (%s): %s", self._path, groups, rule)

    def report_skipped(self) -> None:
        if self._n_skipped:
            message = "%s: %d of %d spans are left out; the first: %s"
            example = self._skipped_example
            logger.warning(message, self._path, self._n_skipped, self._n_spans, example)


def _finished(candidates: list[_Candidate]) -> list[_Candidate]:
    return [candidate for candidate in candidates if candidate.labelled.spans is not None]


def _chosen(candidates: list[_Candidate]) -> _Candidate:
    """The annotation of a text that is used: see `_report_annotators`."""
    finished = _finished(candidates) or candidates
    for candidate in finished:
        if candidate.is_ground_truth:
            return candidate
    for candidate in reversed(finished):
        if candidate.labelled.spans:
            return candidate
    return finished[-1]


def _report_annotators(path: str, candidates_of_texts: Collection[list[_Candidate]]) -> None:
    n_several = 0
    n_different = 0
    for candidates in candidates_of_texts:
        spans_of_annotators = [candidate.labelled.spans for candidate in _finished(candidates)]
        n_several += len(spans_of_annotators) > 1
        n_different += any(spans != spans_of_annotators[0] for spans in spans_of_annotators)
    if n_several:
        rule = "the ground truth is used, else the last one that has spans"
        message = "%s: %d of %d texts have several annotations, which differ in %d: %s"
        logger.warning(message, path, n_several, len(candidates_of_texts), n_different, rule)


def _report_unfinished(path: str, chosen: list[_Candidate]) -> None:
    n_unfinished = sum(candidate.may_be_unfinished for candidate in chosen)
    if 2 * n_unfinished > len(chosen):
        rule = "so they are read as texts without names: export finished texts only"
        message = "%s: %d of %d texts have no spans, %s"
        logger.warning(message, path, n_unfinished, len(chosen), rule)


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
