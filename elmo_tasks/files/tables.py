"""
Tables: rows of JSON, CSV, TSV, Parquet and spreadsheets, and how CSV and spreadsheets are written.

CSV is read by Python's `csv`. pandas would fill a short row without an error, make an index of the first column if the
first row is long, rename a repeated column, read the text `NA` as missing, and name no line.
"""

import csv
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain, count, islice, zip_longest
from pathlib import Path
from typing import Any

from elmo_tasks.extras import needs
from elmo_tasks.files.json_files import json_lines, read_json
from elmo_tasks.text.lines import located, numbered_lines

__all__ = ["REPEATED", "TABLES", "Row", "plain_json", "write_csv", "write_xlsx"]

logger = logging.getLogger(__name__)

Row = dict[str, Any]
"""The values of a row by the names of their columns."""
REPEATED = object()
"""The value of a column with a name that several columns have."""

_Numbered = Iterator[tuple[int, Row]]
# The number of the line or row in the file, and the cells.
_Cells = Iterator[tuple[int, Sequence[Any]]]
# Limits of Excel: rows of a sheet below its header, and characters of a cell.
MAX_ROWS, _MAX_CHARACTERS = 2**20 - 1, 2**15 - 1


def _repeated(columns: Iterable[str]) -> Row:
    return {name: REPEATED for name, n in Counter(columns).items() if n > 1}


def _json_object(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    return row if len(row) == len(pairs) else row | _repeated(name for name, _ in pairs)


# `json.loads` would make a decoder for each line.
_decode = json.JSONDecoder(object_pairs_hook=_json_object).decode
_json_lines = partial(json_lines, decode=_decode)


def _json_rows(path: Path) -> _Numbered:
    """The objects or strings of a list, which is read as a whole; an object; or JSON lines in a file named `.json`."""
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    try:
        has_lines = isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        has_lines = False
    if has_lines:
        yield from _json_lines(path)
        return
    content = read_json(path, _decode)
    rows = content if isinstance(content, list) else [content]
    yield from enumerate((row if isinstance(row, dict) else {"text": row} for row in rows), start=1)


def _csv_rows(path: Path) -> _Numbered:
    # The default is 131,072 characters, but a text may be a book.
    csv.field_size_limit(2**31 - 1)
    lines = (line for _, line in numbered_lines(path, keep_ends=True))
    header = next(lines, "")
    if is_of_excel := header.startswith("sep=") and len(header.strip()) == len("sep=,"):
        delimiter = header[len("sep=")]
    else:
        # The one that makes the most columns of the header.
        delimiter = max(",;\t|", key=lambda each: len(next(csv.reader([header], delimiter=each))))
    rows = csv.reader(lines if is_of_excel else chain([header], lines), delimiter=delimiter, strict=True)

    def numbered() -> _Cells:
        number = 1 + is_of_excel
        try:
            for cells in rows:
                if cells:
                    yield number, cells
                number = 1 + is_of_excel + rows.line_num
        except csv.Error as error:
            raise ValueError(f"{error}: {path}, line {number}") from None

    return _rows_below_header(path, numbered(), "line")


def _tsv_rows(path: Path) -> _Numbered:
    """Quotation marks are part of the texts, as in exports of databases: `csv` reads them as those of CSV."""
    cells = ((number, line.split("\t")) for number, line in numbered_lines(path) if line)
    return _rows_below_header(path, cells, "line")


def _xlsx_rows(path: Path) -> _Numbered:
    """The rows of the first sheet, one at a time. A formula has the value that Excel has saved."""
    with needs("tables"):
        from openpyxl import load_workbook
        from openpyxl.utils.escape import unescape

    def numbered() -> _Cells:
        with open(path, "rb") as file, located(path, "workbook"):
            first, *others = load_workbook(file, read_only=True, data_only=True).worksheets
            filled = [sheet.title for sheet in others if any(islice(sheet.iter_rows(values_only=True), 1))]
            if filled:
                _warn_of_sheets(path, first.title, *filled)
            # Some programs write wrong ones.
            first.reset_dimensions()
            yield from enumerate(first.iter_rows(values_only=True), start=1)

    def cells() -> _Cells:
        for number, row in numbered():
            if any(cell is not None for cell in row):
                # Excel writes a carriage return as `_x000D_`, which openpyxl keeps.
                yield number, [unescape(cell) if isinstance(cell, str) else cell for cell in row]

    return _rows_below_header(path, cells(), "row", is_padded=True)


@cache
def _warn_of_sheets(path: Path, first: str, *others: str) -> None:
    logger.warning("%s: reads the first sheet, %r, not %s", path, first, ", ".join(map(repr, others)))


def _rows_below_header(path: Path, numbered: _Cells, unit: str, is_padded: bool = False) -> _Numbered:
    """The rows below the first one. Columns without a name are left out."""
    _, header = next(numbered, (0, []))
    columns = ["" if cell is None else str(cell).strip() for cell in header]
    repeated = _repeated(columns)
    for n_rows, (number, cells) in enumerate(numbered, start=1):
        is_short = len(cells) < len(columns) and not is_padded
        if is_short or any(cell not in ("", None) for cell in cells[len(columns) :]):
            found = f"expected {len(columns)} columns, as in the header, got {len(cells)}"
            raise ValueError(f"{found}: {path}, {unit} {number}")
        row = dict(zip_longest(columns, cells[: len(columns)])) | repeated
        row.pop("", None)
        yield n_rows, row


def _parquet_rows(path: Path) -> _Numbered:
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


TABLES: dict[str, Callable[[Path], _Numbered]] = {
    "jsonl": _json_lines,
    "json": _json_rows,
    "csv": _csv_rows,
    "tsv": _tsv_rows,
    "xlsx": _xlsx_rows,
    "parquet": _parquet_rows,
}
"""Functions that read the rows of a file, each with its number. An error names the line or row of the file."""


def plain_json(value: Any) -> Any:
    """A value of a table as JSON: dates as strings, and null for numbers that JSON does not have."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain_json, value))
    return str(value)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_xlsx(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a workbook. It has a second sheet if the first is full; texts like `=1` are not formulas."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    n_cut = 0

    def cell_of(value: Any) -> Any:
        nonlocal n_cut
        if not isinstance(value, str):
            return value
        n_cut += len(value) > _MAX_CHARACTERS
        cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("\ufffd", value[:_MAX_CHARACTERS]))
        cell.data_type = "s"
        return cell

    workbook, rows = Workbook(write_only=True), iter(rows)
    n_rows = MAX_ROWS
    while n_rows == MAX_ROWS:
        sheet = workbook.create_sheet()
        for n_rows, row in enumerate(chain([columns], islice(rows, MAX_ROWS))):  # noqa: B007
            sheet.append(list(map(cell_of, row)))
    workbook.save(path)
    if n_cut:
        logger.warning("%s: %d cells are cut to %d characters, the most that Excel has", path, n_cut, _MAX_CHARACTERS)
