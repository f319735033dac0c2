from pathlib import Path
from typing import Any

import openpyxl
import pandas
import pytest

from elmo_tasks.files import tables
from elmo_tasks.files.tables import TABLES, TableOptions, write_csv, write_xlsx

COLUMNS = ["id", "text", "score"]
ROWS = [["a", '=1+1, "x"\nNA', 0.5], ["é", "", None], ["7", "+2", True]]


def cells_of_rows(file_format: str, path: Path) -> list[list[Any]]:
    rows = TABLES[file_format](path, TableOptions())
    return [list(row.values()) for _, row in rows]


def test_csv_is_read_back_by_pandas(tmp_path: Path):
    write_csv(tmp_path / "a.csv", COLUMNS, ROWS)
    frame = pandas.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False)
    expected = [["a", '=1+1, "x"\nNA', "0.5"], ["é", "", ""], ["7", "+2", "True"]]
    assert frame.to_numpy().tolist() == expected
    assert cells_of_rows("csv", tmp_path / "a.csv") == expected


def test_a_workbook_is_read_back_by_openpyxl_and_pandas(tmp_path: Path):
    write_xlsx(tmp_path / "a.xlsx", COLUMNS, ROWS)
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active
    rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    assert rows == [COLUMNS, ROWS[0], ["é", None, None], ROWS[2]]
    # Not formulas.
    assert [cell.data_type for cell in sheet[2]] == ["s", "s", "n"]
    assert pandas.read_excel(tmp_path / "a.xlsx").loc[0].tolist() == ROWS[0]
    assert cells_of_rows("xlsx", tmp_path / "a.xlsx")[0] == ROWS[0]


def test_a_workbook_has_the_limits_of_excel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    write_xlsx(tmp_path / "a.xlsx", ["text"], [["a" * 40_000], ["b\x01"], ["c"]])
    first_sheet, second_sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").worksheets
    first_column = [cell.value for cell in first_sheet["A"]]
    assert first_column == ["text", "a" * 32_767, "b\ufffd"]
    assert [cell.value for cell in second_sheet["A"]] == ["text", "c"]
    assert "1 cells are cut to 32767 characters" in caplog.text
