"""Sentences and their vectors in HDF5, as the `elmo` command of AllenNLP before 1.0 wrote them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py

if TYPE_CHECKING:
    from elmo_tasks.embedding.part_files import EmbeddedPart

__all__ = ["job_of_hdf5", "write_hdf5"]

_JOB = "elmo_tasks"


def write_hdf5(path: Path, parts: Iterable["EmbeddedPart"], n_lines: int, job: dict[str, Any]) -> None:
    """
    Writes one dataset a line under its index: `"0"`, `"1"`, ... Beside them, `sentences` has the words of each line,
    and `sentence_to_index` what AllenNLP's readers look for: a JSON object with the index of each sentence as a string,
    of equal sentences the last.

    # Raises

    `OSError`
        If the file cannot be written.
    """
    sentence_to_index: dict[str, str] = {}
    try:
        with h5py.File(path, "w") as file:
            file.attrs[_JOB] = json.dumps(job, sort_keys=True)
            sentences = file.create_dataset("sentences", (n_lines,), dtype=h5py.string_dtype())
            for part in parts:
                sentences[part.first : part.first + len(part.sentences)] = part.sentences
                for index, (sentence, array) in enumerate(
                    zip(part.sentences, part.vectors, strict=True), start=part.first
                ):
                    file.create_dataset(str(index), data=array)
                    sentence_to_index[sentence] = str(index)
            text = json.dumps(sentence_to_index)
            file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())[0] = text
    except RuntimeError as error:
        # What h5py raises when a file cannot be closed: nearly always, a disk that is full.
        raise OSError(f"{path} cannot be written: {error}") from error


def job_of_hdf5(path: Path) -> dict[str, Any] | None:
    """The fingerprint of the job that made a file; `None` if another program made it."""
    with h5py.File(path) as file:
        return json.loads(file.attrs[_JOB]) if _JOB in file.attrs else None
