"""Files of parts, each of which holds some sentences and their vectors."""

import json
import re
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.formats.parquet import checked_rows, metadata_of_parquet, parquet_writer
from elmo_tasks.embed_job.text_parts import PartSummary
from elmo_tasks.files.atomic_files import atomic_file

__all__ = [
    "PartKind",
    "PartOrigin",
    "end_of_part",
    "is_part",
    "numbers_of_parts",
    "part_path",
    "read_part",
    "write_part",
]

PartKind = Literal["npz", "parquet"]

_ORIGIN = "elmo_tasks_part"
_NAME = re.compile(r"part-(\d{8}|[1-9]\d{8,})\.(npz|parquet)", re.ASCII)


@dataclass(frozen=True)
class PartOrigin:
    """
    What a part was computed from. It is kept in its file, so that a part of another text or job is never taken.

    # Parameters

    job
        The digest of the fingerprint of the job.
    lines
        The digest of its lines.
    first
        The index of its first line in the text, from 0.
    n_lines
        How many lines it has.
    """

    job: str
    lines: str
    first: int
    n_lines: int

    @classmethod
    def of(cls, lines: PartSummary, job: str) -> Self:
        """The origin of a part of these lines."""
        return cls(job, lines.digest, lines.first, lines.n_lines)


def part_path(folder: Path, number: int, kind: PartKind) -> Path:
    """The name depends on the number of the part alone, so that a part that is made twice replaces itself."""
    return folder / f"part-{number:08}.{kind}"


def is_part(path: Path) -> bool:
    """Whether a file has the name of a part."""
    return _NAME.fullmatch(path.name) is not None


def numbers_of_parts(folder: Path, kind: PartKind) -> set[int]:
    """
    The parts whose files are in a folder.

    # Raises

    `ValueError`
        If the name of a file looks like that of a part, but is none that this program gives.
    """
    paths = list(folder.glob(f"part-[0-9]*.{kind}"))
    for path in paths:
        if not is_part(path):
            raise ValueError(
                f"{path} must be named like part-00000001.{kind}, as this program names its parts, but is not: move "
                "it to another folder"
            )
    return {int(path.stem.removeprefix("part-")) for path in paths}


def write_part(path: Path, part: EmbeddedPart, origin: PartOrigin) -> None:
    """
    Writes the file of a part, whole or not at all.

    # Raises

    `OSError`
        If it cannot be written.
    """
    with atomic_file(path) as temporary:
        if path.suffix == ".parquet":
            with parquet_writer(temporary, part.vectors[0].dtype, {_ORIGIN: asdict(origin)}) as rows:
                rows.write(part)
            return
        # One array and not one a line, which would take longer to write than to compute. The archive has a CRC-32 of
        # each member.
        with open(temporary, "wb") as file:
            np.savez(
                file,
                origin=np.frombuffer(json.dumps(asdict(origin)).encode(), np.uint8),
                sentences=np.frombuffer("\n".join(part.sentences).encode(), np.uint8),
                shapes=np.array([array.shape for array in part.vectors]),
                vectors=np.concatenate([array.ravel() for array in part.vectors]),
            )


def read_part(path: Path, origin: PartOrigin) -> EmbeddedPart:
    """
    Reads the file of a part.

    # Parameters

    path
        The file.
    origin
        What the part must have been computed from.

    # Raises

    `ValueError`
        If it is damaged, or was computed from something else. The caller knows the remedy.
    `OSError`
        If it cannot be read.
    """
    try:
        found, sentences, vectors = (_read_parquet if path.suffix == ".parquet" else _read_npz)(path)
        if len(sentences) != len(vectors):
            raise ValueError(f"{len(sentences)} sentences, {len(vectors)} arrays")
    except Exception as error:
        # NumPy, zipfile and pyarrow raise errors of any kind for a damaged file; a number is the disk's.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} must be a part that this program wrote, but is damaged ({reason})") from error
    # A part whose vectors were exchanged can have the right origin, but not be a line short.
    if found != asdict(origin) or len(sentences) != origin.n_lines:
        what = "of another job" if found.get("job") != origin.job else "not of these lines"
        raise ValueError(
            f"{path} must be the part of lines {origin.first + 1} to {origin.first + origin.n_lines} of this job, but "
            f"is {what}"
        )
    return EmbeddedPart(origin.first, sentences, vectors)


def end_of_part(path: Path) -> int | None:
    """
    The number of lines of the text up to the end of a part in a Parquet file; `None` if the file does not say it, or
    pyarrow is not installed.
    """
    try:
        origin = metadata_of_parquet(path)[_ORIGIN]
        return int(origin["first"]) + int(origin["n_lines"])
    # pyarrow raises errors of any kind for a damaged file.
    except Exception:
        return None


def _read_npz(path: Path) -> tuple[dict[str, object], list[str], list[np.ndarray]]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no archive, or is cut off")
    with np.load(path) as arrays:
        origin = json.loads(arrays["origin"].tobytes())
        shapes, flat = arrays["shapes"], arrays["vectors"]
        sentences = arrays["sentences"].tobytes().decode().split("\n")
    ends = np.cumsum(shapes.prod(-1))[:-1]
    vectors = [array.reshape(shape) for array, shape in zip(np.split(flat, ends), shapes.tolist(), strict=True)]
    return dict(origin), sentences, vectors


def _read_parquet(path: Path) -> tuple[dict[str, object], list[str], list[np.ndarray]]:
    rows = checked_rows(path)
    if rows is None:
        raise ValueError("it has no checksum of its rows")
    ((sentences, vectors),) = rows
    return dict(metadata_of_parquet(path)[_ORIGIN]), sentences, vectors
