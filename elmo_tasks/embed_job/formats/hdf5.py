"""HDF5 files of sentences and their vectors, as the `elmo` command of AllenNLP before 1.0 wrote them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.files.hdf5_files import new_hdf5
from elmo_tasks.files.hdf5_vectors import VectorLayout, write_array, write_sentence_index, write_strings

__all__ = ["job_of_hdf5", "write_hdf5"]

_JOB = "elmo_tasks"
_OURS = VectorLayout()


def write_hdf5(
    path: Path, parts: Iterable[EmbeddedPart], n_lines: int, job: dict[str, Any], *, layout: VectorLayout = _OURS
) -> None:
    """
    Writes one dataset a line under its index: `"0"`, `"1"`, ...; and two more: `sentences`, the words of each line,
    and `sentence_to_index`, which AllenNLP's readers look for (see `write_sentence_index`). Another `layout` has other
    names, or omits the two.

    Each array has a checksum, and the format 1.10 of HDF5 has them for what stands between the arrays: h5py reads no
    damaged file without an error. See `write_strings` for the exception.

    # Raises

    `OSError`
        If the file cannot be written.
    """
    sentences: list[str] = []
    with new_hdf5(path, libver=("v110", "v110")) as (file, check_disk):
        file.attrs[_JOB] = json.dumps(job, sort_keys=True)
        for part in parts:
            sentences += part.sentences
            for row, array in enumerate(part.vectors):
                write_array(file, part.sentences[row] if layout.sentence_keys else str(part.first + row), array)
                check_disk()
        if layout.with_sentences:
            write_strings(file, "sentences", [sentence.encode() for sentence in sentences])
            check_disk()
        if layout.with_index:
            write_sentence_index(file, sentences)


def job_of_hdf5(path: Path) -> dict[str, Any] | None:
    """The fingerprint of the job that made a file; `None` for a file of another program."""
    with h5py.File(path) as file:
        return json.loads(file.attrs[_JOB]) if _JOB in file.attrs else None
