"""The documents of a corpus: lines, files of a folder, or rows of JSON, CSV, TSV or Parquet; each has a name."""

import csv
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.extras import needs
from elmo_tasks.files.json_files import file_digest, json_lines, read_json, text_digest
from elmo_tasks.text.formats import lines_in
from elmo_tasks.text.lines import located, numbered_lines, text_of_file
from elmo_tasks.text.normal import readable

__all__ = ["FORMATS", "Corpus", "Document"]

logger = logging.getLogger(__name__)


class Document(NamedTuple):
    """The name of a document, its text for each input of the tasks, and the columns to keep."""

    name: str
    texts: tuple[str, ...]
    kept: dict[str, Any]


@dataclass(frozen=True)
class Corpus:
    """A corpus with a text for each of `inputs` in each row: see `annotate_file`."""

    path: Path
    inputs: tuple[str, ...]
    text_columns: Sequence[str] = ()
    id_column: str | None = None
    keep: Sequence[str] = ()
    glob: str = "*"
    input_format: str | None = None

    @cached_property
    def files(self) -> list[Path]:
        """The file, or the files of the folder except hidden ones and copies that editors keep."""
        if not self.path.is_dir():
            return [self.path]
        files = {path: path.relative_to(self.path).parts for path in self.path.rglob(self.glob) if path.is_file()}
        return sorted(
            path for path, parts in files.items() if not any(part[0] == "." or part[-1] == "~" for part in parts)
        )

    @cached_property
    def format(self) -> str:
        """One of `FORMATS`, or the suffix of the texts in a folder."""
        if self.input_format is not None:
            return self.input_format
        kinds = Counter(map(_kind, self.files))
        if len(kinds) > 1:
            found = ", ".join(f"{count} {kind or 'without suffix'}" for kind, count in kinds.items())
            remedy = "choose with --glob '*.txt', or read all as texts with --input-format text"
            raise ValueError(f"expected files of one kind, got {found}: {remedy}: {self.path}")
        return next(iter(kinds), "text")

    def settings(self) -> dict[str, Any]:
        """What the documents depend on, as JSON."""
        lines = [f"{path.relative_to(self.path)} {file_digest(path)}" for path in self.files]
        columns = {"text_column": [*self.text_columns], "id_column": self.id_column, "keep": [*self.keep]}
        return {"corpus": text_digest(readable("\n".join(lines))), "format": self.format, **columns}

    def survey(self) -> tuple[int, set[str]]:
        """
        The number of documents, and the names of the columns that are kept. It reads the whole corpus, so an error in
        any document is raised here.
        """
        n_documents, columns, kept, repeated = 0, dict[str, None](), set[str](), list[str]()
        # Numbers, because the names of many documents may need much memory.
        names = set[int]()
        for place, row in self._rows():
            document = self._document(place, row)
            if (number := hash(document.name)) in names:
                repeated.append(document.name)
            names.add(number)
            columns |= dict.fromkeys(row)
            kept |= document.kept.keys()
            n_documents += 1
        if not n_documents:
            raise ValueError(f"expected texts, got none: {self.path}")
        if unknown := {*self.keep, self.id_column} - {*columns, "all", None}:
            found = ", ".join(columns)
            raise ValueError(f"expected one of the columns {found}, got {', '.join(map(repr, unknown))}: {self.path}")
        if repeated:
            logger.warning("%s: %d names are repeated, such as %r", self.path, len(repeated), repeated[0])
        return n_documents, kept

    def documents(self) -> Iterator[Document]:
        return (self._document(place, row) for place, row in self._rows())

    def _rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows, each with its place: the number of its line or row, its file, or both."""
        columns = self.text_columns or self.inputs
        column = columns[0] if len(columns) == 1 else "text"
        for file in self.files:
            name = str(file.relative_to(self.path)) if self.path.is_dir() else ""
            if self.format in _READERS:
                rows = _READERS[self.format](file)
                yield from ((f"{name}:{number}" if name else str(number), row) for number, row in rows)
            elif name:
                yield name, {column: text_of_file(file)}
            else:
                is_text = self.input_format is not None
                lines = numbered_lines(file) if is_text else lines_in(file, "one text per line", command="annotate")
                yield from ((str(number), {column: line}) for number, line in lines)

    def _document(self, place: str, row: dict[str, Any]) -> Document:
        columns, id_column = self.text_columns or self.inputs, self.id_column or "id"
        texts = [row.get(column, 0) for column in columns]
        # A missing value is an empty text.
        texts = ["" if text is None else text for text in texts]
        if not all(isinstance(text, str) for text in texts):
            found = repr(texts) if row.keys() >= {*columns} else f"the columns {', '.join(row)}"
            wanted = " and ".join(columns)
            raise ValueError(f"expected texts as {wanted}, got {found:.200}: {self.path}, text {place}")
        others = [column for column in row if column not in {*columns, id_column}]
        kept = {column: row.get(column) for column in (others if "all" in self.keep else self.keep)}
        name = place if row.get(id_column) in (None, "") else str(row[id_column])
        return Document(readable(name), tuple(map(readable, texts)), kept)


def _kind(file: Path) -> str:
    """The name of a format of tables, or a suffix. A number is not a suffix, as in `letter.1`."""
    suffix = (file.with_suffix("") if file.suffix.lower() in _COMPRESSED else file).suffix.lower()
    return _SUFFIXES.get(suffix, "" if suffix[1:].isdecimal() else suffix)


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects or strings of a list, an object, or the lines of a file that is named `.json` but has JSON lines."""
    try:
        content = read_json(path)
    except ValueError:
        yield from json_lines(path)
        return
    for number, row in enumerate(content if isinstance(content, list) else [content], start=1):
        yield number, row if isinstance(row, dict) else {"text": row}


def _csv_rows(path: Path, delimiters: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows below a header. The most frequent one of the delimiters in it separates the columns."""
    lines = (line for _, line in numbered_lines(path, keep_ends=True))
    header = next(lines, "")
    # The default is 131,072 characters, but a text may be a book.
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(chain([header], lines), delimiter=max(delimiters, key=header.count), strict=True)
    columns = next(rows, [])
    for number in count(1):
        with located(path, rows.line_num + 1):
            if (cells := next(rows, None)) is None:
                return
            if cells and len(cells) != len(columns):
                raise ValueError(f"expected {len(columns)} columns, as in the header, got {len(cells)}")
        if cells:
            yield number, dict(zip(columns, cells, strict=True))


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with needs("parquet"):
        from pyarrow.parquet import ParquetFile

    batches = ParquetFile(path).iter_batches()
    return enumerate(chain.from_iterable(batch.to_pylist() for batch in batches), start=1)


_READERS: dict[str, Callable[[Path], Iterator[tuple[int, dict[str, Any]]]]] = {
    "jsonl": json_lines,
    "json": _json_rows,
    "csv": partial(_csv_rows, delimiters=",;\t|"),
    "tsv": partial(_csv_rows, delimiters="\t"),
    "parquet": _parquet_rows,
}
FORMATS = ("text", *_READERS)
_SUFFIXES = {**{f".{name}": name for name in _READERS}, ".ndjson": "jsonl"}
_COMPRESSED = (".gz", ".xz", ".bz2")
