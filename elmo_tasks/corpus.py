"""A corpus: lines, files of a folder, or rows of tables; each text has a name. `embed` and `annotate` read it."""

import argparse
import csv
import json
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.files.json_files import file_digest, text_digest
from elmo_tasks.files.tables import REPEATED, TABLES, Row, plain_json
from elmo_tasks.text.formats import format_of, text_sentences, without_boundaries
from elmo_tasks.text.lines import numbered_lines, text_of_file
from elmo_tasks.text.normal import readable
from elmo_tasks.text.words import as_words

__all__ = ["FORMATS", "Corpus", "Document", "Text", "add_corpus_arguments", "in_column", "parquet_type"]

logger = logging.getLogger(__name__)

_Columns = tuple[list[str | None], str | None, dict[str, str | None]]
FORMATS = ("text", *TABLES)
Text = str | list[str]
"""A text, or its words."""


class Document(NamedTuple):
    """The name of a document, its text (`Text`) for each input of the tasks, and the columns to keep, as JSON."""

    name: str
    texts: tuple[Any, ...]
    kept: dict[str, Any]


@dataclass
class Corpus:
    """
    A corpus with a text for each of `inputs` in each row, by default in columns of these names; the name of a text is
    its `id`, or else its number or path. With `of_sentences`, a text is a line also in a folder, or a sentence of
    CoNLL-U, or a list of words in a table; `letters` reads FASTA. Names of columns in a string are separated by commas,
    and in quotation marks if they contain some.
    """

    path: Path
    inputs: tuple[str, ...] = ("text",)
    text_columns: str | Sequence[str] = ()
    id_column: str | None = None
    keep: str | Sequence[str] = ()
    glob: str = "*"
    input_format: str | None = None
    of_sentences: bool = False
    letters: bool = False

    def __post_init__(self) -> None:
        self.text_columns, self.keep = map(_column_names, (self.text_columns, self.keep))

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
        if len(examples := {kind: file.name for file, kind in formats.items()}) > 1:
            found = ", ".join(f"{kind} ({name})" for kind, name in examples.items())
            hint = "choose with --glob '*.txt', or read all as texts with --input-format text"
            raise ValueError(f"expected files of one kind, got {found}: {hint}: {self.path}")
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
        The number of documents, and the columns that are kept, each with its type: see `_type_of_all`. It reads the
        whole corpus, so an error in any document is raised here.
        """
        n_documents, columns, kept, repeated = 0, dict[str, None](), dict[str, set[type]](), list[str]()
        # Numbers, because the names of many documents may need much memory.
        names = set[int]()
        for row, document in self._documents():
            if (number := hash(document.name)) in names:
                repeated.append(document.name)
            names.add(number)
            columns |= dict.fromkeys(row)
            for column, value in document.kept.items():
                # Of Parquet, integers have 64 bits.
                is_large = isinstance(value, int) and not -(2**63) <= value < 2**63
                kept.setdefault(column, set()).add(object if is_large else type(value))
            n_documents += 1
        if not n_documents:
            raise ValueError(f"expected texts, got none: {self.path}")
        wanted = filter(None, {*self.keep, self.id_column} - {"all"})
        if unknown := [name for name in wanted if _column_of(columns, name) is None]:
            found = ", ".join(columns)
            raise ValueError(f"expected one of the columns {found}, got {', '.join(map(repr, unknown))}: {self.path}")
        if repeated:
            logger.warning("%s: %d names are repeated, such as %r", self.path, len(repeated), repeated[0])
        return n_documents, {column: _type_of_all(types) for column, types in kept.items()}

    def documents(self) -> Iterator[Document]:
        return (document for _, document in self._documents())

    def _documents(self) -> Iterator[tuple[Row, Document]]:
        columns_in = lru_cache(maxsize=100)(self._columns_in)
        for place, row in self._rows():
            try:
                yield row, self._document(place, row, columns_in(tuple(row)))
            except ValueError as error:
                raise ValueError(f"{error}: {self.path}, text {place}") from None

    def _rows(self) -> Iterator[tuple[str, Row]]:
        """The rows, each with its place: the number of its line or row, its file, or both."""
        column = self.columns[0] if len(self.columns) == 1 else "text"
        for file in self.files:
            name = str(file.relative_to(self.path)) if self.path.is_dir() else ""
            numbered: Iterator[tuple[int, Any]]
            if self.format in TABLES:
                numbered = TABLES[self.format](file)
            elif self.of_sentences:
                numbered = text_sentences(file, letters=self.letters, is_text=self.input_format == "text")
            elif name:
                yield name, {column: text_of_file(file)}
                continue
            else:
                numbered = numbered_lines(file)
            for number, row in numbered:
                yield f"{name}:{number}" if name else str(number), row if isinstance(row, dict) else {column: row}

    def _columns_in(self, names: tuple[str, ...]) -> _Columns:
        """From the names of all columns: the inputs, the name of a text, and the columns to keep."""
        inputs = [_column_of(names, column) for column in self.columns]
        if None in inputs:
            near = get_close_matches(self.columns[inputs.index(None)], names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"expected texts as {' and '.join(self.columns)}, got the columns {', '.join(names)}{hint}"
            )
        id_column = _column_of(names, self.id_column or "id")
        kept = {column: _column_of(names, column) for column in self.keep if column != "all"}
        if "all" in self.keep:
            used = {id_column, *inputs, *kept.values()}
            kept |= {name: name for name in names if name not in used}
        return inputs, id_column, kept

    def _document(self, place: str, row: Row, columns: _Columns) -> Document:
        inputs, id_column, kept = columns
        texts = tuple([self._text(row, column) for column in inputs])
        name = plain_json(_value(row, id_column))
        values = {column: plain_json(_value(row, name)) for column, name in kept.items()}
        return Document(readable(place if name in (None, "") else str(name)), texts, values)

    def _text(self, row: Row, column: str | None) -> Text:
        text = _value(row, column)
        # A missing value, which some programs write as NaN, is an empty text.
        if text is None or text != text:
            return ""
        if self.of_sentences and isinstance(text, list):
            return [readable(word) for word in as_words(text)]
        # A spreadsheet has a number where a text has only digits.
        if self.format == "xlsx" and isinstance(text, int | float):
            return str(text)
        # Python's list of words, as pandas writes it to CSV.
        is_list = self.format in TABLES and str(text)[:2] in ("['", '["') and str(text)[-2:] in ("']", '"]')
        if not isinstance(text, str) or is_list:
            raise ValueError(f"expected texts as {column}, got {text!r:.200}")
        return without_boundaries(readable(text)) if self.of_sentences else readable(text)


def _column_of(columns: Collection[str], column: str) -> str | None:
    """The name of a column, where it may differ in case and have white space around it."""
    names = (
        [column] if column in columns else [name for name in columns if name.strip().casefold() == column.casefold()]
    )
    return names[0] if len(names) == 1 else None


def _value(row: Row, name: str | None) -> Any:
    value = None if name is None else row[name]
    if value is REPEATED:
        raise ValueError(f"expected one column {name!r}, got several")
    return value


def _type_of_all(types: set[type]) -> str:
    """Arrow's name of the type that values of some types have in common, or `"json"`: they become strings of JSON."""
    known = {bool: "bool", int: "int64", float: "double", str: "string"}
    types = types - {type(None)} or {str}
    return "double" if types == {int, float} else known.get(types.pop(), "json") if len(types) == 1 else "json"


def in_column(value: Any, kind: str) -> Any:
    """A kept value for a column of a type: see `Corpus.survey`."""
    return value if value is None or kind != "json" else json.dumps(value, ensure_ascii=False)


def parquet_type(kind: str) -> Any:
    import pyarrow

    return pyarrow.type_for_alias("string" if kind == "json" else kind)


def _column_names(columns: str | Sequence[str]) -> list[str]:
    return next(csv.reader([columns], skipinitialspace=True), []) if isinstance(columns, str) else [*columns]


def add_corpus_arguments(parser: argparse.ArgumentParser, text_column: str | tuple[str, ...] = ()) -> None:
    add = parser.add_argument
    add("corpus", help="lines of text, .jsonl, .json, .csv, .tsv, .xlsx, .parquet, or a folder; .gz, .xz, .bz2")
    texts = "column with the texts (default: text), or for pairs two names: question,context"
    add("--text-column", default=text_column, metavar="NAME", help=texts)
    add("--id-column", metavar="NAME", help="column with the names of the texts (default: id, else numbers)")
    add("--keep", default=(), metavar="NAME,...", help="columns to copy to the output; 'all': all others")
    add("--glob", default="*", help="the files of a folder, such as '*.txt' (default: all but hidden ones)")
    formats = "text: a text per line; csv: tables with tabs and quotation marks, too (default: by name and content)"
    add("--input-format", choices=FORMATS, help=formats)
