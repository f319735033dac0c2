"""Tests of Tables 5 and 6."""

import json

import pytest

from elmo_tasks.tables import intrinsic_table

CONTENT = {
    "format": 1,
    "data": "four sets",
    "bilm": "small",
    "columns": ["four sets", "ALL"],
    "rows": [{"model": "biLM, first layer", "scores": [66.1, 66.0]}, {"model": "mine", "scores": [1, None]}],
    "notes": ["A note."],
}


class TestIntrinsicTable:
    def test_our_rows_stand_beside_the_papers(self, tmp_path):
        """Oracle: by hand."""
        (tmp_path / "table5.json").write_text(json.dumps(CONTENT))
        table = intrinsic_table("5", tmp_path)
        assert table.columns == ["model", "four sets", "ALL", "paper"]
        assert ["biLM, first layer", "66.10", "66.00", "67.4"] in table.rows
        assert ["biLM, second layer", "–", "–", "69.0"] in table.rows
        assert table.rows[-1] == ["mine", "1.00", "–", "–"]
        assert table.caption[:2] == ["Data: four sets; biLM: small.", "A note."]

    def test_without_the_file_it_says_what_makes_it(self, tmp_path):
        """Oracle: the message."""
        with pytest.raises(FileNotFoundError, match="elmo-wsd makes it"):
            intrinsic_table("5", tmp_path)

    @pytest.mark.parametrize("change", [{"format": 2}, {"rows": None}, {"columns": ["F1"]}])
    def test_another_form_is_refused(self, tmp_path, change):
        """Oracle: the message names the file."""
        (tmp_path / "table6.json").write_text(json.dumps({**CONTENT, **change}))
        with pytest.raises(ValueError, match=r"table6\.json"):
            intrinsic_table("6", tmp_path)
