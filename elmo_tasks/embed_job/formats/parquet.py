"""Parquet files: sentences and their vectors as rows."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart

__all__ = ["job_of_parquet", "parquet_writer", "require_pyarrow", "write_parquet", "write_rows"]

_JOB = b"elmo_tasks"


def require_pyarrow() -> Any:
    """
    # Returns

    `Any`
        The module `pyarrow`.

    # Raises

    `ModuleNotFoundError`
        If pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise ModuleNotFoundError(
            "Parquet is written with pyarrow, which is not installed: `pip install pyarrow`, or choose --format hdf5 "
            "or npz",
            name="pyarrow",
        ) from None
    return pyarrow


@contextmanager
def parquet_writer(path: Path, dtype: np.dtype, job: dict[str, Any]) -> Iterator[Any]:
    """
    A writer of rows with `index` (of the line, from 0), `sentence` (its words with one space between them), `shape` and
    `vectors` (flat, row by row).
    """
    pyarrow = require_pyarrow()
    schema = pyarrow.schema(
        [
            ("index", pyarrow.int64()),
            ("sentence", pyarrow.string()),
            ("shape", pyarrow.list_(pyarrow.int32())),
            # Of 64 bits: a part of many long lines has more than 2^31 numbers.
            ("vectors", pyarrow.large_list(pyarrow.from_numpy_dtype(dtype))),
        ],
        metadata={_JOB: json.dumps(job, sort_keys=True).encode()} if job else None,
    )
    # Vectors do not repeat: a dictionary of them would save nothing.
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        yield writer


def write_rows(writer: Any, part: EmbeddedPart) -> None:
    """Writes a part as one row group."""
    pyarrow = require_pyarrow()
    offsets = np.cumsum([0, *(array.size for array in part.vectors)], dtype=np.int64)
    flat = pyarrow.array(np.concatenate([array.ravel() for array in part.vectors]))
    columns = [
        pyarrow.array(np.arange(part.first, part.first + len(part.sentences))),
        pyarrow.array(part.sentences, pyarrow.string()),
        pyarrow.array([list(array.shape) for array in part.vectors], writer.schema.field("shape").type),
        pyarrow.LargeListArray.from_arrays(pyarrow.array(offsets), flat),
    ]
    # All rows in one group, however many there are.
    writer.write_table(pyarrow.Table.from_arrays(columns, schema=writer.schema), row_group_size=len(part.sentences))


def write_parquet(path: Path, parts: Iterable[EmbeddedPart], n_lines: int, job: dict[str, Any]) -> None:
    """Writes a whole text into one file, a part a row group."""
    parts = iter(parts)
    part = next(parts)
    with parquet_writer(path, part.vectors[0].dtype, job) as writer:
        write_rows(writer, part)
        for part in parts:
            write_rows(writer, part)


def job_of_parquet(path: Path) -> dict[str, Any] | None:
    """The fingerprint of the job that made a file; `None` for a file of another program."""
    metadata = require_pyarrow().parquet.read_schema(path).metadata or {}
    return json.loads(metadata[_JOB]) if _JOB in metadata else None
