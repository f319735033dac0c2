"""Tests of the rows of Parquet."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.formats.parquet import (
    job_of_parquet,
    parquet_writer,
    require_pyarrow,
    write_parquet,
)
from tests.embed_job.parts import JOB, N_LINES, PARTS, SENTENCES, VECTORS


@pytest.fixture
def parquet() -> Any:
    return pytest.importorskip("pyarrow.parquet")


def rows_of(table: Any) -> list[tuple[int, str, np.ndarray]]:
    """Index, words and vectors of each row, by their columns."""
    dtype = np.dtype(table.schema.field("vectors").type.value_type.to_pandas_dtype())
    return [
        (row["index"], row["sentence"], np.array(row["vectors"], dtype).reshape(row["shape"]))
        for row in table.to_pylist()
    ]


class TestWriteParquet:
    def test_each_line_is_a_row(self, tmp_path, parquet):
        """Oracle: the parts, by pyarrow alone; a part is a row group."""
        write_parquet(tmp_path / "out.parquet", PARTS, N_LINES, JOB)
        table = parquet.read_table(tmp_path / "out.parquet")
        assert table.column_names == ["index", "sentence", "shape", "vectors"]
        found = rows_of(table)
        assert [row[:2] for row in found] == list(enumerate(SENTENCES))
        for (_, _, vectors), expected in zip(found, VECTORS, strict=True):
            assert (vectors.dtype, vectors.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(vectors, expected)
        metadata = parquet.read_metadata(tmp_path / "out.parquet")
        assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [3, 1]


class TestRowWriter:
    @pytest.mark.parametrize("shape", [(4,), (3, 2, 4)], ids=["a vector a line", "all layers"])
    def test_vectors_have_any_shape(self, tmp_path, parquet, shape):
        """Oracle: the array."""
        expected = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        with parquet_writer(tmp_path / "out.parquet", expected.dtype, {}) as rows:
            rows.write(EmbeddedPart(7, ["a b"], [expected]))
        ((index, sentence, vectors),) = rows_of(parquet.read_table(tmp_path / "out.parquet"))
        assert (index, sentence, vectors.dtype) == (7, "a b", np.float32)
        np.testing.assert_array_equal(vectors, expected)


class TestJobOfParquet:
    def test_it_is_the_job_that_made_the_file(self, tmp_path, parquet):
        """Oracle: the job; `None` for a file without one, and for one that pyarrow made."""
        import pyarrow

        write_parquet(tmp_path / "ours.parquet", PARTS, N_LINES, JOB)
        with parquet_writer(tmp_path / "part.parquet", VECTORS[0].dtype, {}) as rows:
            rows.write(PARTS[0])
        parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "other.parquet")
        jobs = [job_of_parquet(Path(tmp_path, f"{name}.parquet")) for name in ("ours", "part", "other")]
        assert jobs == [JOB, None, None]


class TestRequirePyarrow:
    def test_without_pyarrow_the_error_says_what_to_do(self, monkeypatch):
        """Oracle: the message; `None` in `sys.modules` is a module that cannot be found."""
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ModuleNotFoundError, match=r"pip install pyarrow.*--format hdf5 or npz"):
            require_pyarrow()

    def test_a_damaged_pyarrow_is_not_called_missing(self, monkeypatch, parquet):
        """Oracle: the name of what cannot be found."""
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        with pytest.raises(ModuleNotFoundError) as raised:
            require_pyarrow()
        assert raised.value.name == "pyarrow.parquet" and "pip install" not in str(raised.value)
