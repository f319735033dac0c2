"""Formats of the output, and the one that a path asks for."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from elmo_tasks.embed_job.formats.hdf5 import job_of_hdf5, write_hdf5
from elmo_tasks.embed_job.formats.npz import job_of_npz, write_npz
from elmo_tasks.embed_job.formats.parquet import job_of_parquet, require_pyarrow, write_parquet
from elmo_tasks.embed_job.formats.part_file import PartKind
from elmo_tasks.files.hdf5_vectors import VectorLayout

__all__ = ["FORMATS", "Format", "allennlp_format", "format_of"]


@dataclass(frozen=True)
class Format:
    """
    # Parameters

    name
        Its name on the command line.
    endings
        Of paths that ask for it.
    kind
        The format of the files of its parts.
    write
        Makes the finished file of `(path, parts, n_lines, job)`. `None`: the folder of the parts is the output.
    job_of
        The fingerprint in a finished file.
    about
        What the fingerprint of a job has to say about the format.
    """

    name: str
    endings: tuple[str, ...]
    kind: PartKind
    write: Callable[..., None] | None = None
    job_of: Callable[[Path], dict[str, Any] | None] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


FORMATS = {
    format.name: format
    for format in (
        Format("hdf5", (".h5", ".hdf5"), "npz", write_hdf5, job_of_hdf5),
        Format("npz", (".npz",), "npz", write_npz, job_of_npz),
        Format("parquet", (".parquet",), "npz", write_parquet, job_of_parquet),
        Format("parquet-folder", (), "parquet"),
    )
}


def allennlp_format(layout: VectorLayout) -> Format:
    """HDF5 in a layout of AllenNLP's, which no ending asks for."""
    return Format("hdf5", (), "npz", partial(write_hdf5, layout=layout), job_of_hdf5, about={"layout": asdict(layout)})


def format_of(output: Path, name: str | None, *, is_on_ray: bool = False) -> Format:
    """
    # Parameters

    output
        The path of the output.
    name
        One of `FORMATS`. `None`: the one that the ending of `output` names; on Ray it is "parquet-folder".
    is_on_ray
        Whether several machines write.

    # Raises

    `ValueError`
        If the format or the ending is unknown, or Ray does not write it.
    `ModuleNotFoundError`
        If it needs pyarrow, which is not installed.
    """
    endings = {ending: format for format in FORMATS.values() for ending in format.endings}
    if name is not None and name not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}, but is {name!r}")
    if is_on_ray:
        of_ending = endings.get(output.suffix)
        if name not in (None, "parquet-folder") or (of_ending and of_ending.name != "parquet"):
            raise ValueError(
                f"Ray writes a folder of Parquet files, but {output} with the format {name} asks for something else: "
                "choose another name, and omit --format"
            )
        found = FORMATS["parquet-folder"]
    elif name is not None:
        found = FORMATS[name]
    elif output.suffix in endings:
        found = endings[output.suffix]
    else:
        raise ValueError(
            f"the name of the output must end with {', '.join(endings)}, but is {str(output)!r}: change it, or give "
            f"--format {'|'.join(FORMATS)}"
        )
    if "parquet" in found.name:
        require_pyarrow()
    return found
