"""Parquet files: sentences and their vectors as rows."""

import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart

__all__ = [
    "RowWriter",
    "checked_rows",
    "job_of_parquet",
    "metadata_of_parquet",
    "parquet_writer",
    "require_pyarrow",
    "write_parquet",
]

_JOB = "elmo_tasks"
# A CRC-32 of each row group. The checksums of pages leave out the metadata, which says where pages are and what they
# hold.
_CHECKSUMS = "elmo_tasks_crc32"
_COLUMNS = ("index", "sentence", "shape", "vectors")


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


class RowWriter:
    """
    Writes parts as row groups.

    # Parameters

    writer
        pyarrow's.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self.checksums: list[int] = []

    def write(self, part: EmbeddedPart) -> None:
        """Writes a part as one row group."""
        pyarrow = require_pyarrow()
        schema = self._writer.schema
        offsets = np.cumsum([0, *(array.size for array in part.vectors)], dtype=np.int64)
        flat = pyarrow.array(np.concatenate([array.ravel() for array in part.vectors]))
        columns = [
            pyarrow.array(np.arange(part.first, part.first + len(part.sentences))),
            pyarrow.array(part.sentences, pyarrow.string()),
            pyarrow.array([list(array.shape) for array in part.vectors], schema.field("shape").type),
            pyarrow.LargeListArray.from_arrays(pyarrow.array(offsets), flat),
        ]
        self.checksums.append(_checksum(columns))
        # All rows in one group, however many there are.
        table = pyarrow.Table.from_arrays(columns, schema=schema)
        self._writer.write_table(table, row_group_size=len(part.sentences))


@contextmanager
def parquet_writer(path: Path, dtype: np.dtype, metadata: dict[str, Any]) -> Iterator[RowWriter]:
    """
    A writer of rows with `index` (of the line, from 0), `sentence` (its words with one space between them), `shape` and
    `vectors` (flat, row by row). The metadata are kept as JSON.
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
        metadata={name: json.dumps(value, sort_keys=True) for name, value in metadata.items()},
    )
    # Vectors do not repeat: a dictionary of them would save nothing.
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=False, write_page_checksum=True) as writer:
        rows = RowWriter(writer)
        yield rows
        writer.add_key_value_metadata({_CHECKSUMS: json.dumps(rows.checksums)})


def checked_rows(path: Path) -> Iterator[tuple[list[str], list[np.ndarray]]] | None:
    """
    The rows of a file, a row group at a time: sentences and vectors.

    # Returns

    `Optional[Iterator[Tuple[List[str], List[np.ndarray]]]]`
        `None` for a file without checksums of this program.

    # Raises

    `ValueError`
        If a checksum does not agree, when its row group is read. pyarrow raises errors of other kinds for files that
        are damaged.
    """
    checksums = metadata_of_parquet(path).get(_CHECKSUMS)
    return None if checksums is None else _checked_rows(path, checksums)


def _checked_rows(path: Path, checksums: list[int]) -> Iterator[tuple[list[str], list[np.ndarray]]]:
    pyarrow = require_pyarrow()
    n_rows = 0
    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        if file.schema_arrow.names != list(_COLUMNS) or file.num_row_groups != len(checksums):
            raise ValueError("its columns or row groups are not those that were written")
        for number, checksum in enumerate(checksums):
            table = file.read_row_group(number)
            columns = [column.combine_chunks() for column in table.columns]
            if _checksum(columns) != checksum:
                raise ValueError(f"the checksum of row group {number} does not agree")
            n_rows += len(table)
            _, sentences, shapes, vectors = columns
            yield (
                sentences.to_pylist(),
                [row.values.to_numpy().reshape(shape) for row, shape in zip(vectors, shapes.to_pylist(), strict=True)],
            )
        if n_rows != file.metadata.num_rows:
            raise ValueError(f"it should have {file.metadata.num_rows} rows, but has {n_rows}")


def _checksum(columns: list[Any]) -> int:
    from pyarrow import compute

    index, sentences, shapes, vectors = columns
    crc = zlib.crc32("\n".join(sentences.to_pylist()).encode())
    for numbers in (
        index,
        compute.list_value_length(shapes),
        shapes.flatten(),
        compute.list_value_length(vectors),
        vectors.flatten(),
    ):
        crc = zlib.crc32(np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False)).data, crc)
    return crc


def write_parquet(path: Path, parts: Iterable[EmbeddedPart], n_lines: int, job: dict[str, Any]) -> None:
    """Writes a whole text into one file, a part a row group."""
    parts = iter(parts)
    part = next(parts)
    with parquet_writer(path, part.vectors[0].dtype, {_JOB: job}) as rows:
        rows.write(part)
        for part in parts:
            rows.write(part)


def job_of_parquet(path: Path) -> dict[str, Any] | None:
    """The fingerprint of the job that made a file; `None` for a file of another program."""
    return metadata_of_parquet(path).get(_JOB)


def metadata_of_parquet(path: Path) -> dict[str, Any]:
    """
    What this program wrote of a file besides its rows.

    # Raises

    `ValueError`
        If it is not JSON.
    """
    # Not those of the schema, which pyarrow takes from a copy in them, without what was added at the end.
    metadata = require_pyarrow().parquet.read_metadata(path).metadata or {}
    return {name.decode(): json.loads(text) for name, text in metadata.items() if name.startswith(_JOB.encode())}
