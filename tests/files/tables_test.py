from pathlib import Path

import openpyxl
import pandas
import pytest

from elmo_tasks.files import tables
from elmo_tasks.files.tables import TABLES, write_csv, write_xlsx

COLUMNS = ["id", "text", "score"]
ROWS = [["a", '=1+1, "x"\nNA', 0.5], ["é", "", None], ["7", "+2", True]]


def test_csv_is_read_back_by_pandas(tmp_path: Path):
    write_csv(tmp_path / "a.csv", COLUMNS, ROWS)
    found = pandas.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False)
    assert found.to_dict("split")["data"] == [
        ["a", '=1+1, "x"\nNA', "0.5"],
        ["é", "", ""],
        ["7", "+2", "True"],
    ]
    assert [
        list(row.values()) for _, row in TABLES["csv"](tmp_path / "a.csv")
    ] == found.to_numpy().tolist()


def test_a_workbook_is_read_back_by_openpyxl_and_pandas(tmp_path: Path):
    write_xlsx(tmp_path / "a.xlsx", COLUMNS, ROWS)
    cells = list(openpyxl.load_workbook(tmp_path / "a.xlsx").active.iter_rows())
    assert [[cell.value for cell in row] for row in cells] == [
        COLUMNS,
        ROWS[0],
        ["é", None, None],
        ROWS[2],
    ]
    # Not formulas.
    assert [cell.data_type for cell in cells[1]] == ["s", "s", "n"]
    assert pandas.read_excel(tmp_path / "a.xlsx").loc[0].tolist() == ROWS[0]
    assert next(list(row.values()) for _, row in TABLES["xlsx"](tmp_path / "a.xlsx")) == ROWS[0]


def test_a_workbook_has_the_limits_of_excel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    write_xlsx(tmp_path / "a.xlsx", ["text"], [["a" * 40_000], ["b\x01"], ["c"]])
    sheets = openpyxl.load_workbook(tmp_path / "a.xlsx").worksheets
    assert [[cell.value for (cell,) in sheet.iter_rows()] for sheet in sheets] == [
        ["text", "a" * 32_767, "b\ufffd"], ["text", "c"]
    ]  # fmt: skip
    assert "1 cells are cut to 32767 characters" in caplog.text
