"""A corpus: lines, files of a folder, or rows of tables; each text has a name. `embed` and `annotate` read it."""

import argparse
import csv
import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.files.json_files import file_digest, text_digest
from elmo_tasks.files.tables import TABLES, Row, plain_json, rows_of
from elmo_tasks.text.formats import format_of, text_sentences, without_boundaries
from elmo_tasks.text.lines import COMPRESSED, numbered_lines, text_of_file
from elmo_tasks.text.normal import readable
from elmo_tasks.text.words import as_words

__all__ = ["FORMATS", "Corpus", "Document", "Text", "add_corpus_arguments", "column_names", "in_column", "parquet_type"]

logger = logging.getLogger(__name__)

FORMATS = ("text", *TABLES)
Text = str | list[str]
"""A text, or its words."""


class Document(NamedTuple):
    """The name of a document, its text (`Text`) for each input of the tasks, and the columns to keep, as JSON."""

    name: str
    texts: tuple[Any, ...]
    kept: dict[str, Any]


@dataclass(frozen=True)
class Corpus:
    """
    A corpus with a text for each of `inputs` in each row: see `annotate_file`. With `of_sentences`, a text is a line
    also in a folder, or a sentence of CoNLL-U, or a list of words in a table; `letters` reads FASTA.
    """

    path: Path
    inputs: tuple[str, ...] = ("text",)
    text_columns: Sequence[str] = ()
    id_column: str | None = None
    keep: Sequence[str] = ()
    glob: str = "*"
    input_format: str | None = None
    of_sentences: bool = False
    letters: bool = False

    @cached_property
    def files(self) -> list[Path]:
        """The file, or the files of the folder except hidden ones, copies that editors keep, and the mark of Spark."""
        if not self.path.is_dir():
            return [self.path]
        files = {path: path.relative_to(self.path).parts for path in self.path.rglob(self.glob) if path.is_file()}
        return sorted(
            path
            for path, parts in files.items()
            if not any(part[0] == "." or part[-1] == "~" or part == "_SUCCESS" for part in parts)
        )

    @cached_property
    def columns(self) -> Sequence[str]:
        """The columns with the inputs."""
        if self.text_columns and len(self.text_columns) != len(self.inputs):
            found = ", ".join(self.text_columns)
            raise ValueError(f"expected a column for each of {', '.join(self.inputs)}, got {found}")
        return self.text_columns or self.inputs

    @cached_property
    def format(self) -> str:
        """One of `FORMATS`, also for sentences of CoNLL-U and FASTA. Files of other formats are an error."""
        if self.input_format is not None:
            return self.input_format
        formats = {file: format_of(file) for file in self.files}
        kinds = {file: _suffix(file) if kind == "text" else kind for file, kind in formats.items()}
        if len(examples := {kind: file.name for file, kind in kinds.items()}) > 1:
            n_of_kind = Counter(kinds.values()).items()
            counts = ", ".join(f"{n} {kind or 'without suffix'} ({examples[kind]})" for kind, n in n_of_kind)
            hint = "choose with --glob '*.txt', or read all as texts with --input-format text"
            raise ValueError(f"expected files of one kind, got {counts}: {hint}: {self.path}")
        kind = next(iter(formats.values()), "text")
        if kind in FORMATS or (self.of_sentences and kind == "CoNLL-U") or (self.letters and kind == "FASTA"):
            return kind if kind in TABLES else "text"
        hint = "extract its texts first, or choose how to read it with --input-format"
        raise ValueError(f"expected texts or a table, got {kind} ({hint}): {self.files[0]}")

    def settings(self) -> dict[str, Any]:
        """What the documents depend on, as JSON."""
        lines = [f"{path.relative_to(self.path)} {file_digest(path)}" for path in self.files]
        columns = {"text_column": [*self.text_columns], "id_column": self.id_column, "keep": [*self.keep]}
        return {"corpus": text_digest(readable("\n".join(lines))), "input_format": self.format, **columns}

    def survey(self) -> tuple[int, dict[str, str]]:
        """
        The number of documents, and the columns that are kept, each with its type: see `_type_of`. It reads the whole
        corpus, so an error in any document is raised here.
        """
        n_documents, columns, kept, repeated = 0, dict[str, None](), dict[str, set[str]](), list[str]()
        # Numbers, because the names of many documents may need much memory.
        names = set[int]()
        for row, document in self._documents():
            if (number := hash(document.name)) in names:
                repeated.append(document.name)
            names.add(number)
            columns |= dict.fromkeys(row)
            for column, value in document.kept.items():
                kept.setdefault(column, set()).add(_type_of(value))
            n_documents += 1
        if not n_documents:
            raise ValueError(f"expected texts, got none: {self.path}")
        wanted = {*self.keep, self.id_column} - {"all", None}
        if unknown := [name for name in wanted if name and _column_of(Row(columns.items()), name) is None]:
            found = ", ".join(columns)
            raise ValueError(f"expected one of the columns {found}, got {', '.join(map(repr, unknown))}: {self.path}")
        if repeated:
            logger.warning("%s: %d names are repeated, such as %r", self.path, len(repeated), repeated[0])
        return n_documents, {column: _common_type(types) for column, types in kept.items()}

    def documents(self) -> Iterator[Document]:
        return (document for _, document in self._documents())

    def _documents(self) -> Iterator[tuple[Row, Document]]:
        for place, row in self._rows():
            try:
                yield row, self._document(place, row)
            except ValueError as error:
                raise ValueError(f"{error}: {self.path}, text {place}") from None

    def _rows(self) -> Iterator[tuple[str, Row]]:
        """The rows, each with its place: the number of its line or row, its file, or both."""
        column = self.columns[0] if len(self.columns) == 1 else "text"
        for file in self.files:
            name = str(file.relative_to(self.path)) if self.path.is_dir() else ""
            numbered: Iterator[tuple[int, Any]]
            if self.format in TABLES:
                numbered = rows_of(file, self.format)
            elif self.of_sentences:
                numbered = text_sentences(file, letters=self.letters, is_text=self.input_format == "text")
            elif name:
                yield name, Row([(column, text_of_file(file))])
                continue
            else:
                numbered = numbered_lines(file)
            for number, row in numbered:
                row = row if isinstance(row, Row) else Row([(column, row)])
                yield f"{name}:{number}" if name else str(number), row

    def _document(self, place: str, row: Row) -> Document:
        texts = tuple(self._text(row, column) for column in self.columns)
        id_column = _column_of(row, self.id_column or "id")
        name = plain_json(row.get(id_column)) if id_column is not None else None
        kept: dict[str, str | None] = {column: _column_of(row, column) for column in self.keep if column != "all"}
        if "all" in self.keep:
            used = {id_column, *(_column_of(row, column) for column in self.columns), *kept.values()}
            kept |= {column: _column_of(row, column) for column in row if column not in used}
        values = {column: plain_json(row.get(name)) if name is not None else None for column, name in kept.items()}
        return Document(readable(place if name in (None, "") else str(name)), texts, values)

    def _text(self, row: Row, column: str) -> Text:
        name = _column_of(row, column)
        if name is None:
            near = get_close_matches(column, row, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"expected texts as {' and '.join(self.columns)}, got the columns {', '.join(row)}{hint}")
        text = row[name]
        # A missing value, which some programs write as NaN, is an empty text.
        if text is None or text != text:
            return ""
        if self.of_sentences and isinstance(text, list):
            return [readable(word) for word in as_words(text)]
        # A spreadsheet has a number where a text has only digits.
        if self.format == "xlsx" and isinstance(text, int | float):
            return str(text)
        if not isinstance(text, str):
            raise ValueError(f"expected texts as {column}, got {text!r:.200}")
        return without_boundaries(readable(text)) if self.of_sentences else readable(text)


def _column_of(row: Row, column: str) -> str | None:
    """The name of a column in a row, where it may differ in case and have white space around it."""
    names = [column] if column in row else [name for name in row if name.strip().casefold() == column.casefold()]
    if not row.repeated.isdisjoint(names):
        raise ValueError(f"expected one column {names[0]!r}, got several")
    return names[0] if len(names) == 1 else None


def _suffix(file: Path) -> str:
    """The suffix of a text. A number is not a suffix, as in `letter.1`."""
    suffix = (file.with_suffix("") if file.suffix.lower() in COMPRESSED else file).suffix.lower()
    return "" if suffix[1:].isdecimal() else suffix


def _type_of(value: Any) -> str:
    """The type of a kept value in an output with types; `"json"` is a string of JSON."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int64" if -(2**63) <= value < 2**63 else "json"
    types = {str: "string", float: "double", type(None): "null"}
    return types.get(type(value), "json")


def _common_type(types: set[str]) -> str:
    types = types - {"null"} or {"string"}
    return "double" if types == {"int64", "double"} else types.pop() if len(types) == 1 else "json"


def in_column(value: Any, kind: str) -> Any:
    """A kept value for a column of a type: see `_type_of`."""
    return value if value is None or kind != "json" else json.dumps(value, ensure_ascii=False)


def parquet_type(kind: str) -> Any:
    import pyarrow

    return pyarrow.type_for_alias("string" if kind == "json" else kind)


def column_names(columns: str | Sequence[str]) -> list[str]:
    """Names from a command line, separated by commas, in quotation marks if they contain some."""
    return next(csv.reader([columns], skipinitialspace=True), []) if isinstance(columns, str) else [*columns]


def add_corpus_arguments(parser: argparse.ArgumentParser, text_column: str | tuple[str, ...] = ()) -> None:
    add = parser.add_argument
    texts = "column with the texts (default: text), or for pairs two names: question,context"
    add("--text-column", default=text_column, metavar="NAME", help=texts)
    add("--id-column", metavar="NAME", help="column with the names of the texts (default: id, else numbers)")
    add("--keep", default=(), metavar="NAME,...", help="columns to copy to the output; 'all': all others")
    add("--glob", default="*", help="the files of a folder, such as '*.txt' (default: all but hidden ones)")
    formats = (
        "text: a text per line; csv also reads tables with tabs and quotation marks (default: by name and content)"
    )
    add("--input-format", choices=FORMATS, help=formats)
