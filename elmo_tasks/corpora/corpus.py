"""
A corpus: lines, files of a folder, or rows of tables; each text has a name. `embed` and `annotate`
read it.
"""

import csv
import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from elmo_tasks.files.json_files import file_digest, text_digest
from elmo_tasks.files.lines import numbered_lines, text_of_file
from elmo_tasks.files.tables import REPEATED, TABLES, Row, TableOptions, plain_json
from elmo_tasks.text.formats import format_by_suffix, format_of, text_sentences, without_boundaries
from elmo_tasks.text.normal import readable
from elmo_tasks.text.words import as_words

__all__ = [
    "FORMATS",
    "Corpus",
    "Document",
    "Text",
    "compute_named",
    "in_column",
    "parquet_type",
]

logger = logging.getLogger(__name__)

FORMATS = ("text", *TABLES)
Result = TypeVar("Result")
Text = str | list[str]
"""A text, or its words."""

# How Hive, Spark and pyarrow write a missing value.
_MISSING_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class Document(NamedTuple):
    """
    The name of a document, its text (`Text`) for each input of the tasks, and the columns to keep,
    as JSON.
    """

    name: str
    texts: tuple[Any, ...]
    kept: dict[str, Any]


@dataclass(frozen=True)
class _CorpusColumns:
    """
    The names of the columns with the inputs and the name of a text, and those to keep by their
    names in the output. `None`: the table has no such column.
    """

    inputs: list[str | None]
    id_column: str | None
    kept: dict[str, str | None]


@dataclass
class Corpus:
    """
    The texts of a file or folder. A folder `year=2020` is a column `year` of all that is in it.

    # Parameters

    inputs
        The names of the texts of a document: one, or the two that a task compares.
    text_columns
        The columns with these texts; by default, those with the same names.
    id_column
        The column with the name of a document; by default `id`, or else its number or path.
    keep
        Columns to copy (`"all"`: all others). In a string, the names of columns are separated by
        commas, and in quotation marks if they contain one.
    of_sentences
        Whether a document is a sentence: a line (also in a folder), a sentence of CoNLL-U, or a
        text or a list of words in a table.
    letters
        Whether a document is the letters of a line, or of a record of FASTA.
    glob, input_format, table
        See `annotate_file`.
    """

    path: Path
    inputs: tuple[str, ...] = ("text",)
    text_columns: str | Sequence[str] = ()
    id_column: str | None = None
    keep: str | Sequence[str] = ()
    glob: str = "*"
    input_format: str | None = None
    table: TableOptions = field(default_factory=TableOptions)
    of_sentences: bool = False
    letters: bool = False

    def __post_init__(self) -> None:
        self.text_columns = _column_names(self.text_columns)
        self.keep = _column_names(self.keep)

    @cached_property
    def files(self) -> list[Path]:
        """
        The file, or the files of the folder except hidden ones, copies that editors keep, and the
        mark of Spark.
        """
        if not self.path.is_dir():
            return [self.path]
        files = []
        for path in self.path.rglob(self.glob):
            names = path.relative_to(self.path).parts
            if path.is_file() and not any(map(_is_hidden, names)):
                files.append(path)
        return sorted(files)

    @cached_property
    def input_columns(self) -> Sequence[str]:
        """The names of the columns with the inputs."""
        if self.text_columns and len(self.text_columns) != len(self.inputs):
            inputs = ", ".join(self.inputs)
            columns = ", ".join(self.text_columns)
            raise ValueError(f"expected a column for each of {inputs}, got {columns}")
        return self.text_columns or self.inputs

    @cached_property
    def format(self) -> str:
        """
        One of `FORMATS`, also for sentences of CoNLL-U and FASTA. Files of other formats are an
        error.
        """
        file_format = self.input_format or self._format_of_files()
        self.table.check(file_format, self.path)
        return file_format

    def _format_of_files(self) -> str:
        examples: dict[str, Path] = {}
        for file in self.files:
            examples[format_of(file)] = file
        if len(examples) > 1:
            formats = ", ".join(f"{name} ({file.name})" for name, file in examples.items())
            hint = "choose with --glob '*.txt', or read all as texts with --input-format text"
            raise ValueError(f"expected files of one kind, got {formats}: {hint}: {self.path}")
        if not examples:
            return "text"
        ((name, file),) = examples.items()
        if name in TABLES:
            if format_by_suffix(file) != name:
                logger.warning("%s: %s is %s, by its content", self.path, file.name, name)
            return name
        is_of_sentences = self.of_sentences and name == "CoNLL-U"
        if name == "text" or is_of_sentences or (self.letters and name == "FASTA"):
            return "text"
        hint = "extract its texts first, or choose how to read it with --input-format"
        raise ValueError(f"expected texts or a table, got {name} ({hint}): {self.files[0]}")

    def settings(self) -> dict[str, Any]:
        """What the documents depend on, as JSON."""
        lines = [f"{path.relative_to(self.path)} {file_digest(path)}" for path in self.files]
        return {
            "corpus": text_digest(readable("\n".join(lines))),
            "input_format": self.format,
            "text_column": list(self.text_columns),
            "id_column": self.id_column,
            "keep": list(self.keep),
            "sheet": self.table.sheet,
            "header_row": self.table.header_row,
        }

    def survey(self) -> tuple[int, dict[str, str]]:
        """
        The number of documents, and the columns that are kept, each with its type: see
        `_type_of_all`. It reads the whole corpus, so an error in any document is raised here.
        """
        n_documents = 0
        columns: dict[str, None] = {}
        types: dict[str, set[type]] = {}
        repeated: list[str] = []
        # Numbers, because the names of many documents may need much memory.
        names: set[int] = set()
        for row, document in self._documents():
            number = hash(document.name)
            if number in names:
                repeated.append(document.name)
            names.add(number)
            columns |= dict.fromkeys(row)
            for column, value in document.kept.items():
                types.setdefault(column, set()).add(_type_of(value))
            n_documents += 1
        if not n_documents:
            raise ValueError(f"expected texts, got none: {self.path}")
        self._check_names(columns)
        if repeated:
            message = "%s: %d names are repeated, such as %r"
            logger.warning(message, self.path, len(repeated), repeated[0])
        return n_documents, {column: _type_of_all(types[column]) for column in types}

    def _check_names(self, columns: Collection[str]) -> None:
        """Raises an error if the user has named a column that is in no row."""
        wanted = set(self.keep) - {"all"}
        if self.id_column is not None:
            wanted.add(self.id_column)
        unknown = [name for name in wanted if _find_column(columns, name) is None]
        if unknown:
            known = ", ".join(columns)
            listed = ", ".join(map(repr, unknown))
            raise ValueError(f"expected one of the columns {known}, got {listed}: {self.path}")

    def documents(self) -> Iterator[Document]:
        return (document for _, document in self._documents())

    def _documents(self) -> Iterator[tuple[Row, Document]]:
        # Most rows have the same columns. A cache on the method would keep the corpus in memory.
        resolve_columns = lru_cache(maxsize=100)(self._resolve_columns)
        for position, row in self._rows():
            try:
                yield row, self._document(position, row, resolve_columns(tuple(row)))
            except ValueError as error:
                raise ValueError(f"{error}: {self.path}, text {position}") from None

    def _rows(self) -> Iterator[tuple[str, Row]]:
        """The rows, each with its position: the number of its line or row, its file, or both."""
        column = self.input_columns[0] if len(self.input_columns) == 1 else "text"
        for file in self.files:
            name = ""
            partitions: Row = {}
            if self.path.is_dir():
                relative_path = file.relative_to(self.path)
                name = str(relative_path)
                partitions = _partitions_in(relative_path.parts[:-1])
            if name and self.format not in TABLES and not self.of_sentences:
                yield name, {**partitions, column: text_of_file(file)}
                continue
            for number, row in self._numbered_rows(file):
                position = f"{name}:{number}" if name else str(number)
                if not isinstance(row, dict):
                    row = {column: row}
                # A column of the file is not replaced.
                yield position, partitions | row if partitions else row

    def _numbered_rows(self, file: Path) -> Iterator[tuple[int, Row | Text]]:
        """The rows of a table, or texts, with their numbers."""
        if self.format in TABLES:
            return TABLES[self.format](file, self.table)
        if self.of_sentences:
            is_text = self.input_format == "text"
            return text_sentences(file, letters=self.letters, is_text=is_text)
        return numbered_lines(file)

    def _resolve_columns(self, names: tuple[str, ...]) -> _CorpusColumns:
        """Finds the columns to read among the columns of a row."""
        inputs = [_find_column(names, column) for column in self.input_columns]
        if None in inputs:
            near = get_close_matches(self.input_columns[inputs.index(None)], names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            wanted = " and ".join(self.input_columns)
            raise ValueError(
                f"expected texts as {wanted}, got the columns {', '.join(names)}{hint}"
            )
        id_column = _find_column(names, self.id_column or "id")
        kept = {column: _find_column(names, column) for column in self.keep if column != "all"}
        if "all" in self.keep:
            used = {id_column, *inputs, *kept.values()}
            kept |= {name: name for name in names if name not in used}
        return _CorpusColumns(inputs, id_column, kept)

    def _document(self, position: str, row: Row, columns: _CorpusColumns) -> Document:
        texts = tuple([self._text(row, column) for column in columns.inputs])
        name = plain_json(_value(row, columns.id_column))
        if name in (None, ""):
            name = position
        kept = {}
        for kept_name, column in columns.kept.items():
            kept[kept_name] = plain_json(_value(row, column))
        return Document(readable(str(name)), texts, kept)

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
        is_list = self.format in TABLES and _is_list_of_python(str(text))
        if not isinstance(text, str) or is_list:
            raise ValueError(f"expected texts as {column}, got {text!r:.200}")
        return without_boundaries(readable(text)) if self.of_sentences else readable(text)


def compute_named(
    compute: Callable[[Sequence[Document]], Result],
    documents: Sequence[Document],
    path: Path,
) -> Result:
    """
    The result for some documents of a corpus. An error names the first document that alone has one,
    or else the first and the last of them.
    """
    try:
        return compute(documents)
    except Exception as error:
        for document in documents:
            try:
                compute([document])
            except Exception as error_of_document:
                raise _named(error_of_document, f"{path}, text {document.name}") from error
        names = f"texts {documents[0].name} to {documents[-1].name}"
        raise _named(error, f"{path}, {names}") from error


def _named(error: Exception, texts: str) -> Exception:
    if isinstance(error, ValueError):
        return ValueError(f"{error}: {texts}")
    return RuntimeError(f"{type(error).__name__}: {error}: {texts}")


def _is_list_of_python(text: str) -> bool:
    """Whether a text is a list of words, as pandas writes it to CSV."""
    return text[:2] in ("['", '["') and text[-2:] in ("']", '"]')


def _is_hidden(name: str) -> bool:
    return name[0] == "." or name[-1] == "~" or name == "_SUCCESS"


def _partitions_in(folders: Sequence[str]) -> Row:
    """The columns that folders like `year=2020` stand for, with strings as values."""
    columns: Row = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if name and equals:
            columns[name] = None if value == _MISSING_PARTITION else unquote(value)
    return columns


def _find_column(names: Collection[str], wanted: str) -> str | None:
    """
    The one of `names` that is `wanted`, or differs from it only in case or by white space around
    it. `None`: no name does, or several do.
    """
    if wanted in names:
        return wanted
    found = [name for name in names if name.strip().casefold() == wanted.casefold()]
    return found[0] if len(found) == 1 else None


def _value(row: Row, name: str | None) -> Any:
    value = None if name is None else row[name]
    if value is REPEATED:
        raise ValueError(f"expected one column {name!r}, got several")
    return value


def _type_of(value: Any) -> type:
    # Integers in Parquet have at most 64 bits.
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return object
    return type(value)


def _type_of_all(types: set[type]) -> str:
    """
    Arrow's name of the type that values of some types have in common, or `"json"`: they become
    strings of JSON.
    """
    known = {bool: "bool", int: "int64", float: "double", str: "string"}
    types = types - {type(None)} or {str}
    if types == {int, float}:
        return "double"
    if len(types) > 1:
        return "json"
    (common_type,) = types
    return known.get(common_type, "json")


def in_column(value: Any, column_type: str) -> Any:
    """A kept value for a column of a type: see `Corpus.survey`."""
    if value is None or column_type != "json":
        return value
    return json.dumps(value, ensure_ascii=False)


def parquet_type(column_type: str) -> Any:
    import pyarrow

    return pyarrow.type_for_alias("string" if column_type == "json" else column_type)


def _column_names(columns: str | Sequence[str]) -> list[str]:
    if isinstance(columns, str):
        return next(csv.reader([columns], skipinitialspace=True), [])
    return list(columns)
