"""Files of parts, each of which holds some sentences and their vectors."""

import zipfile
from pathlib import Path
from typing import Literal

import numpy as np

from elmo_tasks.atomic_files import atomic_file
from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.formats.parquet import parquet_writer, write_rows

__all__ = ["PartKind", "numbers_of_parts", "part_path", "read_part", "write_part"]

PartKind = Literal["npz", "parquet"]


def part_path(folder: Path, number: int, kind: PartKind) -> Path:
    """The name depends on the number of the part alone, so that a part that is made twice replaces itself."""
    return folder / f"part-{number:08}.{kind}"


def numbers_of_parts(folder: Path, kind: PartKind) -> set[int]:
    """The parts whose files are in a folder."""
    return {int(path.stem.removeprefix("part-")) for path in folder.glob(f"part-[0-9]*.{kind}")}


def write_part(path: Path, part: EmbeddedPart) -> None:
    """
    Writes the file of a part, whole or not at all.

    # Raises

    `OSError`
        If it cannot be written.
    """
    with atomic_file(path) as temporary:
        if path.suffix == ".parquet":
            with parquet_writer(temporary, part.vectors[0].dtype, {}) as writer:
                write_rows(writer, part)
            return
        # One array and not one a line, which would take longer to write than to compute.
        with open(temporary, "wb") as file:
            np.savez(
                file,
                first=np.array(part.first),
                sentences=np.frombuffer("\n".join(part.sentences).encode(), np.uint8),
                shapes=np.array([array.shape for array in part.vectors]),
                vectors=np.concatenate([array.ravel() for array in part.vectors]),
            )


def read_part(path: Path) -> EmbeddedPart:
    """
    Reads the file of a part of the kind "npz".

    # Raises

    `ValueError`
        If it is damaged.
    """
    try:
        with np.load(path) as arrays:
            first, shapes, flat = int(arrays["first"]), arrays["shapes"], arrays["vectors"]
            sentences = arrays["sentences"].tobytes().decode().split("\n")
        ends = np.cumsum(shapes.prod(-1))[:-1]
        vectors = [array.reshape(shape) for array, shape in zip(np.split(flat, ends), shapes.tolist(), strict=True)]
        if len(sentences) != len(vectors):
            raise ValueError(f"{len(sentences)} sentences, {len(vectors)} arrays")
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} must be a part that this program wrote, but is damaged ({error}): remove it and resume "
            "with --resume"
        ) from error
    return EmbeddedPart(first, sentences, vectors)
