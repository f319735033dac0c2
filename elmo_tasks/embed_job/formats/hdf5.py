"""HDF5 files of sentences and their vectors, as the `elmo` command of AllenNLP before 1.0 wrote them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.files.hdf5_files import new_hdf5

__all__ = ["job_of_hdf5", "write_hdf5"]

_JOB = "elmo_tasks"
_MAX_CHUNK = 2**24
# Bytes of strings with their padding, whatever they have without it.
_MAX_PADDED = 2**24
# HDF5 allows strings and chunks of up to 4 GiB.
_MAX_WIDTH = 2**30
_STRINGS_AT_ONCE = 1000


def write_hdf5(path: Path, parts: Iterable[EmbeddedPart], n_lines: int, job: dict[str, Any]) -> None:
    """
    Writes one dataset a line under its index: `"0"`, `"1"`, ...; and two more: `sentences`, the words of each line,
    and `sentence_to_index`, which AllenNLP's readers look for: a JSON object with the index of each sentence as a
    string, of equal sentences the last.

    Each array has a checksum, and the format 1.10 of HDF5 has them for what stands between the arrays: h5py reads no
    damaged file without an error. See `_write_strings` for the exception.

    # Raises

    `OSError`
        If the file cannot be written.
    """
    sentences: list[str] = []
    with new_hdf5(path, libver=("v110", "v110")) as (file, check_disk):
        file.attrs[_JOB] = json.dumps(job, sort_keys=True)
        for part in parts:
            sentences += part.sentences
            for index, array in enumerate(part.vectors, start=part.first):
                _write_array(file, str(index), array)
                check_disk()
        _write_strings(file, "sentences", [sentence.encode() for sentence in sentences])
        check_disk()
        places = {sentence: str(index) for index, sentence in enumerate(sentences)}
        _write_strings(file, "sentence_to_index", [json.dumps(places).encode()])


def _write_array(file: h5py.File, name: str, array: np.ndarray) -> None:
    # One chunk, since each has its entry in the file; and h5py's choice where that would be too large.
    chunks = array.shape if array.nbytes <= _MAX_CHUNK else True
    file.create_dataset(name, data=array, **({"chunks": chunks, "fletcher32": True} if array.size else {}))


def _write_strings(file: h5py.File, name: str, strings: list[bytes]) -> None:
    """
    Writes strings of one length, padded, since HDF5 has no checksum for strings of variable length. Only where one of
    them is so much longer than the others that reading them would take too much memory, they are of variable length.
    """
    width = max(map(len, strings), default=0)
    if width > _MAX_WIDTH or not 0 < width * len(strings) <= max(_MAX_PADDED, 8 * sum(map(len, strings))):
        file.create_dataset(name, data=strings, dtype=h5py.string_dtype())
        return
    # Compressed, the padding takes no room.
    shape, dtype = (len(strings),), h5py.string_dtype(length=width)
    filters: dict[str, Any] = {"fletcher32": True, "compression": "gzip", "compression_opts": 1}
    data = file.create_dataset(name, shape, dtype, chunks=True, **filters)
    for start in range(0, len(strings), _STRINGS_AT_ONCE):
        end = start + _STRINGS_AT_ONCE
        data[start:end] = np.array(strings[start:end], dtype)


def job_of_hdf5(path: Path) -> dict[str, Any] | None:
    """The fingerprint of the job that made a file; `None` for a file of another program."""
    with h5py.File(path) as file:
        return json.loads(file.attrs[_JOB]) if _JOB in file.attrs else None
