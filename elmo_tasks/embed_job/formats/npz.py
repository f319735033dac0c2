"""Archives of NumPy with sentences and their vectors, which `np.load` reads."""

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart

__all__ = ["job_of_npz", "write_npz"]

_JOB = "job.json"
_SENTENCES = "sentences.txt"


def write_npz(path: Path, parts: Iterable[EmbeddedPart], n_lines: int, job: dict[str, Any]) -> None:
    """
    Writes one array a line under its index: `"0"`, `"1"`, ...; and `sentences.txt` with the words of each line, as
    bytes of UTF-8: an array of strings would give each the width of the longest.
    """
    sentences: list[str] = []
    # Not `np.savez`, which needs all arrays in memory. Not compressed, since vectors hardly become smaller.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        # Without the time of day, so that equal jobs make equal files.
        archive.writestr(zipfile.ZipInfo(_JOB), json.dumps(job, sort_keys=True))
        for part in parts:
            sentences += part.sentences
            for index, array in enumerate(part.vectors, start=part.first):
                with archive.open(f"{index}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        with archive.open(_SENTENCES, "w", force_zip64=True) as member:
            member.write("".join(f"{sentence}\n" for sentence in sentences).encode())


def job_of_npz(path: Path) -> dict[str, Any] | None:
    """
    The fingerprint of the job that made a file; `None` for a file of another program.

    # Raises

    `ValueError`
        If it is not an archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(_JOB)) if _JOB in archive.namelist() else None
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} must be an archive of NumPy's, but is something else, or damaged: {error}") from error
