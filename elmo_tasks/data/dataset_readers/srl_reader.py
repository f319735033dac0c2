"""Dataset reader for semantic roles in the columns of CoNLL-2012 and OntoNotes."""

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import SequenceLabelField

from elmo_tasks.data.dataset_readers.task_reader import (
    SpanTagsField,
    TaskReader,
    sentence_fields,
    word_of,
)
from elmo_tasks.files.lines import located
from elmo_tasks.text.formats import columns_of, corpus_words, line_blocks, lines_in

__all__ = ["SrlReader", "annotated_sentences"]

logger = logging.getLogger(__name__)

_WORD = 3
# The predicates' columns are between the entity column and the last one, coreference.
_FIRST_PREDICATE = 11
_CELL = re.compile(r"((?:\([^()*]+)*)\*(\)*)")
_PREDICATE = re.compile(r"\(V[(*]")

# The number of a line, and its columns.
_NumberedColumns = tuple[int, list[str]]


@DatasetReader.register("elmo_srl")
class SrlReader(TaskReader):
    """
    Reads a file in the columns of CoNLL-2012, or all files below a folder with names that end in
    `gold_conll`. Each predicate of a sentence is an instance; columns without a `V` are skipped,
    and their number is logged.

    AllenNLP's `srl` does not read single files, accepts propositions with crossing brackets, and
    loses a proposition if two predicates share a word.
    """

    wanted = "proposition, with its predicate marked as (V*)"

    def rows(
        self, path: str
    ) -> Iterator[tuple[int | str, tuple[list[Token], list[int], list[str] | None]]]:
        n_without_predicate = 0
        for file, rows in annotated_sentences(path):
            words = [Token(word_of(columns[_WORD])) for _, columns in rows]
            number, columns = rows[0]
            place = number if file == path else f"{Path(file).name}, line {number}"
            for column in range(_FIRST_PREDICATE, len(columns) - 1):
                indicator = _predicate(rows, column)
                if not any(indicator):
                    n_without_predicate += 1
                    continue
                tags = _tags(file, rows, column) if self.reads_gold else None
                yield place, (words, indicator, tags)
        if n_without_predicate:
            logger.warning(
                "%s: skipped %d propositions without a predicate (V)", path, n_without_predicate
            )

    def text_to_instance(
        self,
        words: Sequence[str | Token],
        verb_indicator: Sequence[int],
        tags: Sequence[str] | None = None,
    ) -> Instance:
        """
        `tokens`, `verb_indicator` (1 at the words of the predicate), `metadata`, and `tags` in the
        BIO scheme if they are given. The metadata has `words`, `verb` and `verb_index` (the first
        word of the predicate and its position), and `gold_tags`.
        """
        fields = sentence_fields(words)
        text = fields["tokens"]
        index = list(verb_indicator).index(1)
        metadata = fields["metadata"].metadata
        metadata |= {"verb": metadata["words"][index], "verb_index": index}
        fields["verb_indicator"] = SequenceLabelField(list(verb_indicator), text)
        if tags is not None:
            fields["tags"] = SpanTagsField(tags, text, prefixes="BI")
            metadata["gold_tags"] = list(tags)
        return Instance(fields)


def annotated_sentences(path: str) -> Iterator[tuple[str, list[_NumberedColumns]]]:
    """
    The sentences with columns of predicates in a file, or in the files of a folder: each with the
    file's path.
    """
    for file in _files_with_columns(path):
        lines = lines_in(
            file, "CoNLL-2012", "CoNLL-2012", "columns", "tsv", hint="see docs/tasks/srl.md"
        )
        for block in line_blocks(lines, _is_break):
            rows = [(number, columns_of(line)) for number, line in block]
            n_columns = max(_FIRST_PREDICATE + 1, len(rows[0][1]))
            for number, columns in rows:
                # If the coreference column is missing, the last predicate would be lost.
                if len(columns) != n_columns or _CELL.fullmatch(columns[-1]):
                    expected = f"{n_columns} columns, the last of coreference"
                    raise ValueError(
                        f"expected {expected}, got {' '.join(columns)}: {file}, line {number}"
                    )
            if n_columns > _FIRST_PREDICATE + 1:
                with located(file, rows[0][0]):
                    corpus_words(columns[_WORD] for _, columns in rows)
                yield file, rows


def _files_with_columns(path: str) -> list[str]:
    if Path(path).is_dir():
        return sorted(map(str, Path(path).rglob("*gold_conll")))
    return [path]


def _is_break(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _predicate(rows: list[_NumberedColumns], column: int) -> list[int]:
    """
    1 at the words of the predicate. AllenNLP also marks the words of `C-V`, which the model has to
    predict.
    """
    indicator = []
    is_inside = False
    for _, columns in rows:
        is_inside = is_inside or _PREDICATE.search(columns[column]) is not None
        indicator.append(int(is_inside))
        is_inside = is_inside and ")" not in columns[column]
    return indicator


def _tags(file: str, rows: list[_NumberedColumns], column: int) -> list[str]:
    """The column of a predicate as tags in the BIO scheme."""
    tags: list[str] = []
    label: str | None = None
    for number, columns in rows:
        cell = columns[column]
        # Most cells neither open nor close an argument.
        if cell == "*":
            tags.append("O" if label is None else f"I-{label}")
            continue
        match = _CELL.fullmatch(cell)
        if match is None:
            raise _unexpected_cell(cell, file, number)
        opened = match[1].split("(")[1:]
        n_closed = len(match[2])
        n_open = len(opened) + (label is not None)
        is_second_verb = opened == ["V"] and "B-V" in tags
        if n_open > 1 or n_closed > n_open or is_second_verb:
            raise _unexpected_cell(cell, file, number)
        if opened:
            label = opened[0]
            tags.append(f"B-{label}")
        else:
            tags.append("O" if label is None else f"I-{label}")
        if n_closed:
            label = None
    if label is not None:
        raise ValueError(f"expected a bracket that closes {label}: {file}, line {rows[0][0]}")
    return tags


def _unexpected_cell(cell: str, file: str, number: int) -> ValueError:
    expected = "arguments like (ARG0*, *, *) or (V*), one after the other, and one V per column"
    return ValueError(f"expected {expected}, got {cell}: {file}, line {number}")
