"""
Tables: rows of JSON, CSV, TSV, Parquet and spreadsheets, and how CSV and spreadsheets are written.

CSV is read by Python's `csv`. pandas would fill a short row without an error, make an index of the
first column if the first row is long, rename a repeated column, read the text `NA` as missing, and
name no line.
"""

import csv
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, count, dropwhile, islice, zip_longest
from pathlib import Path
from typing import Any

from elmo_tasks.files.extras import needs
from elmo_tasks.files.json_files import first_json_line, json_lines, read_json
from elmo_tasks.files.lines import located, numbered_lines

__all__ = ["REPEATED", "TABLES", "Row", "TableOptions", "plain_json", "write_csv", "write_xlsx"]

logger = logging.getLogger(__name__)

Row = dict[str, Any]
"""The values of a row by the names of their columns."""
REPEATED = object()
"""The value of a column with a name that several columns have."""

_NumberedRows = Iterator[tuple[int, Row]]
# The number of the line or row in the file, and the cells.
_NumberedCells = Iterator[tuple[int, Sequence[Any]]]
# Limits of Excel: rows of a sheet below its header, columns, and characters of a cell.
MAX_ROWS = 2**20 - 1
_MAX_COLUMNS = 2**14
_MAX_CHARACTERS = 2**15 - 1
# A line before the header that names the delimiter, which some programs put in quotation marks.
_DELIMITER_OF_EXCEL = re.compile(r'"?sep=(.)"?\s*')


@dataclass(frozen=True)
class TableOptions:
    """
    Which part of a file is the table.

    # Parameters

    sheet
        The name of a sheet of a workbook, or its number from 1. `None`: the first one that is not
        hidden.
    header_row
        The number of the line or row with the names of the columns; what is above is ignored.
        `None`: the first one that is not empty. 0: there is none, and the columns are 1, 2, ...
    """

    sheet: str | None = None
    header_row: int | None = None

    def check(self, file_format: str, path: Path) -> None:
        """Raises an error if a file of this format has no such part."""
        if self.sheet is not None and file_format != "xlsx":
            raise ValueError(f"expected a workbook for a sheet, got {file_format}: {path}")
        if self.header_row is not None and self.header_row < 0:
            raise ValueError(f"expected a header row from 0, got {self.header_row}")
        if self.header_row is not None and file_format not in _WITH_HEADER:
            formats = ", ".join(_WITH_HEADER)
            raise ValueError(f"expected {formats} for a header row, got {file_format}: {path}")


_WITH_HEADER = ("csv", "tsv", "xlsx")


def _repeated(columns: Iterable[str]) -> Row:
    return {name: REPEATED for name, n in Counter(columns).items() if n > 1}


def _json_object(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        row |= _repeated(name for name, _ in pairs)
    return row


# `json.loads` would make a decoder for each line.
_decode = json.JSONDecoder(object_pairs_hook=_json_object).decode


def _json_lines(path: Path, options: TableOptions) -> _NumberedRows:
    return json_lines(path, _decode)


def _json_rows(path: Path, options: TableOptions) -> _NumberedRows:
    """
    The objects or strings of a list, which is read as a whole; an object; or JSON lines in a file
    named `.json`.
    """
    if isinstance(first_json_line(path), dict):
        yield from _json_lines(path, options)
        return
    content = read_json(path, _decode)
    rows = content if isinstance(content, list) else [content]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            row = {"text": row}
        yield number, row


def _csv_rows(path: Path, options: TableOptions) -> _NumberedRows:
    return _rows_below_header(path, _csv_cells(path, options), "line", options)


def _csv_cells(path: Path, options: TableOptions) -> _NumberedCells:
    # The default is 131,072 characters, but a text may be a book.
    csv.field_size_limit(2**31 - 1)
    lines = numbered_lines(path, keep_ends=True)
    no_line = (0, "")
    number, header = next(lines, no_line)
    delimiter_line = _DELIMITER_OF_EXCEL.fullmatch(header)
    if delimiter_line:
        number, header = next(lines, no_line)
    if options.header_row is None:
        while header.isspace():
            number, header = next(lines, no_line)
    else:
        while header and number < options.header_row:
            number, header = next(lines, no_line)
    if delimiter_line:
        delimiter = delimiter_line[1]
    else:
        delimiter = max(",;\t|", key=partial(_n_columns, header))
    texts = chain([header], (line for _, line in lines))
    rows = csv.reader(texts, delimiter=delimiter, strict=True)
    header_number = number
    try:
        for cells in rows:
            if cells:
                yield number, cells
            number = header_number + rows.line_num
    except csv.Error as error:
        raise ValueError(f"{error}: {path}, line {number}") from None


def _n_columns(header: str, delimiter: str) -> int:
    return len(next(csv.reader([header], delimiter=delimiter)))


def _tsv_rows(path: Path, options: TableOptions) -> _NumberedRows:
    """
    Quotation marks are part of the texts, as in exports of databases: `csv` reads them as those of
    CSV.
    """
    cells = ((number, line.split("\t")) for number, line in numbered_lines(path) if line)
    return _rows_below_header(path, cells, "line", options)


def _xlsx_rows(path: Path, options: TableOptions) -> _NumberedRows:
    """The rows of one sheet, one at a time. A formula has the value that Excel has saved."""
    return _rows_below_header(path, _xlsx_cells(path, options), "row", options, is_padded=True)


def _xlsx_cells(path: Path, options: TableOptions) -> _NumberedCells:
    with needs("tables"):
        from openpyxl import load_workbook
        from openpyxl.utils.escape import unescape

    with open(path, "rb") as file, located(path, "workbook"):
        sheet = _sheet_of(load_workbook(file, read_only=True, data_only=True), path, options)
        # Some programs write wrong dimensions.
        sheet.reset_dimensions()
        # Rows that are missing in the file are also rows, so one with a large number would be many.
        rows = sheet.iter_rows(values_only=True, max_row=MAX_ROWS + 2)
        for number, row in enumerate(rows, start=1):
            if number > MAX_ROWS + 1 or len(row) > _MAX_COLUMNS:
                limits = f"{MAX_ROWS + 1:,} rows and {_MAX_COLUMNS:,} columns"
                raise ValueError(f"expected at most {limits}, as in Excel, got more")
            if any(cell is not None for cell in row):
                # Excel writes a carriage return as `_x000D_`, which openpyxl keeps.
                yield number, [unescape(cell) if isinstance(cell, str) else cell for cell in row]


def _sheet_of(workbook: Any, path: Path, options: TableOptions) -> Any:
    sheets = workbook.worksheets
    if options.sheet is not None:
        for number, sheet in enumerate(sheets, start=1):
            if options.sheet in (sheet.title, str(number)):
                return sheet
        titles = ", ".join(repr(sheet.title) for sheet in sheets)
        raise ValueError(f"expected one of the sheets {titles}, got {options.sheet!r}")
    visible_sheets = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
    sheets = visible_sheets or sheets
    first_sheet = sheets[0]
    ignored_titles = []
    for sheet in sheets[1:]:
        # One row is enough to tell that a sheet is not empty.
        if any(islice(sheet.iter_rows(values_only=True), 1)):
            ignored_titles.append(repr(sheet.title))
    if ignored_titles:
        _warn_of_sheets(path, first_sheet.title, ", ".join(ignored_titles))
    return first_sheet


@cache
def _warn_of_sheets(path: Path, title: str, ignored_titles: str) -> None:
    message = "%s: reads the first sheet, %r, not %s (--sheet)"
    logger.warning(message, path, title, ignored_titles)


def _rows_below_header(
    path: Path, numbered: _NumberedCells, unit: str, options: TableOptions, is_padded: bool = False
) -> _NumberedRows:
    """The rows below the names of the columns. Columns without a name are left out."""
    header_row = options.header_row or 0
    # CSV begins at its header already, because the header shows the delimiter.
    numbered = dropwhile(lambda numbered_cells: numbered_cells[0] < header_row, numbered)
    number, header = next(numbered, (0, []))
    columns = ["" if cell is None else str(cell).strip() for cell in header]
    if options.header_row == 0 and header:
        numbered = chain([(number, header)], numbered)
        columns = [str(column) for column in range(1, len(header) + 1)]
    n_columns = len(columns)
    repeated = _repeated(columns)
    for row_number, (number, cells) in enumerate(numbered, start=1):
        is_short = len(cells) < n_columns and not is_padded
        is_long = any(cell not in ("", None) for cell in cells[n_columns:])
        if is_short or is_long:
            problem = f"expected {n_columns} columns, as in the header, got {len(cells)}"
            raise ValueError(f"{problem}: {path}, {unit} {number}")
        row = dict(zip_longest(columns, cells[:n_columns])) | repeated
        row.pop("", None)
        yield row_number, row


def _parquet_rows(path: Path, options: TableOptions) -> _NumberedRows:
    with needs("parquet"):
        from pyarrow.parquet import ParquetFile

    numbers = count(1)
    with located(path, "Parquet"):
        # Few rows at a time, because a text may be a book.
        for batch in ParquetFile(path).iter_batches(batch_size=1000):
            names = batch.schema.names
            repeated = _repeated(names)
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                yield next(numbers), dict(zip(names, cells, strict=True)) | repeated


TABLES: dict[str, Callable[[Path, TableOptions], _NumberedRows]] = {
    "jsonl": _json_lines,
    "json": _json_rows,
    "csv": _csv_rows,
    "tsv": _tsv_rows,
    "xlsx": _xlsx_rows,
    "parquet": _parquet_rows,
}
"""
Functions that read the rows of a file, each with its number. An error names the line or row of the
file.
"""


def plain_json(value: Any) -> Any:
    """A value of a table as JSON: dates are strings, and numbers that JSON does not have null."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return str(value)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_xlsx(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """
    Writes a workbook. It has a second sheet if the first is full; texts like `=1` are not formulas.
    """
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    n_cut = 0

    def cell_of(value: Any) -> Any:
        nonlocal n_cut
        if not isinstance(value, str):
            return value
        n_cut += len(value) > _MAX_CHARACTERS
        text = ILLEGAL_CHARACTERS_RE.sub("\ufffd", value[:_MAX_CHARACTERS])
        cell = WriteOnlyCell(sheet, text)
        cell.data_type = "s"
        return cell

    workbook = Workbook(write_only=True)
    remaining = iter(rows)
    is_full = True
    while is_full:
        sheet = workbook.create_sheet()
        sheet.append([cell_of(name) for name in columns])
        n_rows = 0
        for row in islice(remaining, MAX_ROWS):
            sheet.append([cell_of(value) for value in row])
            n_rows += 1
        is_full = n_rows == MAX_ROWS
    workbook.save(path)
    if n_cut:
        message = "%s: %d cells are cut to %d characters, the most that Excel has"
        logger.warning(message, path, n_cut, _MAX_CHARACTERS)
