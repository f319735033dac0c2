"""Tests of the formats of the output."""

import sys
from pathlib import Path

import pytest

from elmo_tasks.embed_job.formats.output_format import format_of


class TestFormatOf:
    @pytest.mark.parametrize(
        ("name", "format", "expected"),
        [
            ("a.h5", None, "hdf5"),
            ("a.hdf5", None, "hdf5"),
            ("a.npz", None, "npz"),
            ("a.h5", "npz", "npz"),
            ("a", "hdf5", "hdf5"),
        ],
    )
    def test_a_format_that_is_given_takes_precedence_over_the_ending(self, name, format, expected):
        """Oracle: by hand."""
        assert format_of(Path(name), format).name == expected

    @pytest.mark.parametrize("name", ["vectors", "vectors.txt", "h5"])
    def test_another_ending_is_an_error(self, name):
        """Oracle: the message names the endings and the remedy."""
        with pytest.raises(ValueError, match=r"end with \.h5, \.hdf5, \.npz, \.parquet, but is .* --format hdf5\|npz"):
            format_of(Path(name), None)

    def test_another_format_is_an_error(self):
        """Oracle: the message lists the known ones."""
        with pytest.raises(ValueError, match="one of hdf5, npz, parquet, parquet-folder, but is 'csv'"):
            format_of(Path("a.h5"), "csv")

    def test_ray_writes_a_folder_of_parquet(self):
        """Oracle: by hand."""
        pytest.importorskip("pyarrow")
        for name, format in (("vectors", None), ("a.parquet", None), ("vectors", "parquet-folder")):
            assert format_of(Path(name), format, is_on_ray=True).name == "parquet-folder"

    @pytest.mark.parametrize(("name", "format"), [("a.h5", None), ("a.npz", "parquet-folder"), ("a", "parquet")])
    def test_ray_writes_nothing_else(self, name, format):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="Ray writes a folder of Parquet files, but"):
            format_of(Path(name), format, is_on_ray=True)

    def test_without_pyarrow_parquet_is_an_error_that_says_how_to_get_it(self, monkeypatch):
        """Oracle: the message; `None` in `sys.modules` is a module that cannot be found."""
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ModuleNotFoundError, match=r"pip install pyarrow.*--format hdf5"):
            format_of(Path("a.parquet"), None)
