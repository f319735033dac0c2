"""
Tables: rows of JSON, CSV, TSV, Parquet and spreadsheets, and how CSV and spreadsheets are written.

CSV is read by Python's `csv`. pandas would fill a short row without an error, make an index of the first column if the
first row is long, rename a repeated column, read the text `NA` as missing, and name no line.
"""

import csv
import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from elmo_tasks.extras import needs
from elmo_tasks.files.json_files import json_lines, read_json
from elmo_tasks.text.lines import located, numbered_lines

__all__ = ["TABLES", "Row", "plain_json", "rows_of", "write_csv", "write_xlsx"]

logger = logging.getLogger(__name__)


class Row(dict[str, Any]):
    """The values of a row by the names of their columns; of a repeated name, the last one."""

    repeated: frozenset[str] = frozenset()
    """Names of several columns."""

    def __init__(self, cells: Iterable[tuple[str, Any]]) -> None:
        cells = list(cells)
        super().__init__(cells)
        if len(self) < len(cells):
            names = [name for name, _ in cells]
            self.repeated = frozenset(name for name in names if names.count(name) > 1)


_Numbered = Iterator[tuple[int, Row]]
# Limits of Excel: rows of a sheet below its header, and characters of a cell.
_MAX_ROWS, _MAX_CHARACTERS = 2**20 - 1, 2**15 - 1
# The number of the line or row in the file, and the cells.
_Cells = Iterable[tuple[int, list[Any]]]


def rows_of(path: Path, table: str) -> Iterator[tuple[int, Row]]:
    """The rows of a table, one of `TABLES`, each with its number. An error names the line or row of the file."""
    return TABLES[table](path)


def _json_lines(path: Path) -> _Numbered:
    return json_lines(path, Row)


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
    content = read_json(path, Row)
    rows = content if isinstance(content, list) else [content]
    yield from enumerate((row if isinstance(row, Row) else Row([("text", row)]) for row in rows), start=1)


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
        while True:
            number = rows.line_num + is_of_excel + 1
            with located(path, number):
                cells = next(rows, None)
            if cells is None:
                return
            if cells:
                yield number, cells

    return _rows_below_header(path, numbered(), "line")


def _tsv_rows(path: Path) -> _Numbered:
    """Quotation marks are part of the texts, as in exports of databases: `csv` reads them as those of CSV."""
    cells = ((number, line.split("\t")) for number, line in numbered_lines(path) if line)
    return _rows_below_header(path, cells, "line")


def _xlsx_rows(path: Path) -> _Numbered:
    """The rows of the first sheet, one at a time."""
    with needs("tables"):
        from openpyxl import load_workbook
        from openpyxl.utils.escape import unescape

    def numbered() -> _Cells:
        with open(path, "rb") as file, located(path, "workbook"):
            sheets, formulas = (
                load_workbook(file, read_only=True, data_only=each).worksheets for each in (True, False)
            )
            for sheet in [*sheets, *formulas]:
                # Some programs write wrong ones.
                sheet.reset_dimensions()
            others = [sheet.title for sheet in sheets[1:] if any(islice(sheet.iter_rows(values_only=True), 1))]
            if others:
                _warn_of_sheets(path, sheets[0].title, *others)
            rows = zip(*(sheet.iter_rows(values_only=True) for sheet in (sheets[0], formulas[0])), strict=True)
            for number, cells in enumerate(rows, start=1):
                # pandas writes a text that begins with `=` as a formula without a value.
                values = [formula if value is None else value for value, formula in zip(*cells, strict=True)]
                # Excel writes a carriage return as `_x000D_`, which openpyxl keeps.
                yield number, [unescape(value) if isinstance(value, str) else value for value in values]

    return _rows_below_header(path, numbered(), "row", is_padded=True)


@cache
def _warn_of_sheets(path: Path, first: str, *others: str) -> None:
    logger.warning("%s: reads the first sheet, %r, not %s", path, first, ", ".join(map(repr, others)))


def _rows_below_header(path: Path, numbered: _Cells, unit: str, is_padded: bool = False) -> _Numbered:
    """The rows below the first one. Columns without a name are left out."""
    columns: list[str] | None = None
    n_rows = 0
    for number, cells in numbered:
        if all(cell is None for cell in cells):
            continue
        if columns is None:
            columns = ["" if cell is None else str(cell).strip() for cell in cells]
            continue
        n_missing = len(columns) - len(cells)
        if (n_missing > 0 and not is_padded) or any(cell not in ("", None) for cell in cells[len(columns) :]):
            found = f"expected {len(columns)} columns, as in the header, got {len(cells)}"
            raise ValueError(f"{found}: {path}, {unit} {number}")
        cells = [*cells[: len(columns)], *[None] * n_missing]
        n_rows += 1
        yield n_rows, Row((column, cell) for column, cell in zip(columns, cells, strict=True) if column)


def _parquet_rows(path: Path) -> _Numbered:
    with needs("parquet"):
        from pyarrow.parquet import ParquetFile

    numbers = count(1)
    with located(path, "Parquet"):
        # Few rows at a time, because a text may be a book.
        for batch in ParquetFile(path).iter_batches(batch_size=1000):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                yield next(numbers), Row(zip(batch.schema.names, cells, strict=True))


TABLES: dict[str, Callable[[Path], _Numbered]] = {
    "jsonl": _json_lines,
    "json": _json_rows,
    "csv": _csv_rows,
    "tsv": _tsv_rows,
    "xlsx": _xlsx_rows,
    "parquet": _parquet_rows,
}


def plain_json(value: Any) -> Any:
    """A value of a table as JSON: dates as strings, and null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain_json, value))
    return value if value is None or isinstance(value, bool | int | str) else str(value)


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
    n_rows = _MAX_ROWS
    while n_rows == _MAX_ROWS:
        sheet = workbook.create_sheet()
        for n_rows, row in enumerate(chain([columns], islice(rows, _MAX_ROWS))):  # noqa: B007
            sheet.append(list(map(cell_of, row)))
    workbook.save(path)
    if n_cut:
        logger.warning("%s: %d cells are cut to %d characters, the most that Excel has", path, n_cut, _MAX_CHARACTERS)
