"""`python -m elmo_tasks verify`: finds damaged files by their checksums, without running what is in them."""

import argparse
import gzip
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from elmo_tasks.files.checksums import check_file, checksum_path
from elmo_tasks.files.sealed_json import check_listed_file, is_sealed, listed_files, read_json, read_sealed
from elmo_tasks.printable import printable

__all__ = ["DESCRIPTION", "Finding", "add_arguments", "run", "verify"]

DESCRIPTION = "Check archives, checkpoints, weights, embeddings and indexes for damage."

_BYTES_AT_ONCE = 2**20


@dataclass(frozen=True)
class Finding:
    """
    The state of a file.

    # Parameters

    path : `Path`
        The file.
    state : `str`
        `"whole"`: a checksum over all of it agrees. `"readable"`: it can be read to its end, but has no checksum (or
        not over all of it). `"damaged"`: it is not what was written. `"unchecked"`: what reads it is not installed.
    reason : `str`
        What is wrong, what to install, or which checksum agreed.
    """

    path: Path
    state: Literal["whole", "readable", "damaged", "unchecked"]
    reason: str


def verify(path: Path) -> Iterator[Finding]:
    """
    Checks a file, or all files of a folder that have a checksum or a format that this package writes; and the files
    that a JSON file lists with their checksums.

    # Raises

    `FileNotFoundError`
        If there is no such file or folder.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} must be a file or a folder, but there is none")
    if not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} must be a file or a folder, but is a pipe or a device")
    paths = sorted(child for child in path.rglob("*") if child.is_file()) if path.is_dir() else [path]
    # An unfinished job keeps its parts in OUTPUT.parts.
    jobs = [file for file in paths if file.name == "_job.json" and file.parent.resolve().suffix != ".parts"]
    listed = {file: (digest, lister) for lister in paths for file, digest in _listed(lister).items()}
    for file in paths:
        if path.is_dir() and file.suffix == ".sha256":
            if not file.with_suffix("").exists():
                yield Finding(file.with_suffix(""), "damaged", f"missing, but {file.name} is there")
            continue
        reader = _reader(file)
        if file not in jobs and file not in listed and (reader is not None or checksum_path(file).exists()):
            yield _finding(file, reader)
    for file, (digest, lister) in listed.items():
        yield _finding(file, partial(_read_listed, digest, lister))
    for job in jobs:
        yield from _of_job(job)


def _of_job(job: Path) -> Iterator[Finding]:
    """The record of a folder of Parquet files, and the parts that the folder has lost."""
    from elmo_tasks.embed_job.job_folder import missing_parts

    try:
        missing = missing_parts(job)
    except (ValueError, OSError) as error:
        yield Finding(job, "damaged", str(error))
        return
    yield Finding(job, "readable", "no checksum")
    for part in missing:
        yield Finding(part, "damaged", "missing: the embedding command with --force computes all parts again")


def _listed(path: Path) -> dict[Path, str]:
    """The files that a JSON file lists with their checksums; of a damaged one, none."""
    try:
        return listed_files(path, read_sealed(path)) if path.suffix == ".json" else {}
    except (ValueError, OSError):
        return {}


def _read_listed(digest: str, lister: Path, path: Path) -> str:
    check_listed_file(path, digest, lister)
    return f"SHA-256 in {lister.name}"


def _finding(path: Path, reader: "Callable[[Path], str | None] | None") -> Finding:
    try:
        # A file that is as it was written is whole, whatever the ending of its name says.
        if check_file(path):
            return Finding(path, "whole", "SHA-256")
        own = None if reader is None else reader(path)
    except ImportError as error:
        return Finding(path, "unchecked", f"{error.name} is not installed: `pip install {error.name}`")
    except _ERRORS as error:
        return Finding(path, "damaged", " ".join(str(error).split()) or type(error).__name__)
    if own is not None:
        return Finding(path, "whole", own)
    return Finding(path, "readable", "no checksum")


# What the readers below say of a damaged file.
_ERRORS = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    MemoryError,
)


def _reader(path: Path) -> "Callable[[Path], str | None] | None":
    name = path.name.lower()
    for endings, reader in _READERS:
        if name.endswith(endings):
            return reader
    return None


def _read_compressed(path: Path) -> str:
    opened = lzma.open if path.suffix == ".xz" else gzip.open
    with opened(path, "rb") as stream:
        while stream.read(_BYTES_AT_ONCE):
            pass
    return "CRC of the compressed stream"


def _read_zip(path: Path) -> str | None:
    if not zipfile.is_zipfile(path):
        # torch wrote tensors in another form before 2020, which has no checksums.
        with open(path, "rb") as opened:
            if path.suffix == ".th" and opened.read(2) == b"\x80\x02":
                return None
        raise ValueError("it is no zip file, or is cut off")
    with zipfile.ZipFile(path) as file:
        if (bad := file.testzip()) is not None:
            raise ValueError(f"the checksum of '{bad}' in it does not agree")
    return "CRC of each member"


def _read_hdf5(path: Path) -> str | None:
    import h5py

    from elmo_tasks.files.hdf5_files import storage_problem

    with_checksum = True
    with h5py.File(path) as file:
        names: list[str] = []
        file.visititems(lambda name, node: names.append(name) if isinstance(node, h5py.Dataset) else None)
        for name in names:
            data = file[name]
            if (problem := storage_problem(data)) is not None:
                raise ValueError(f"'{name}' must not be read: {problem}")
            # An empty array has nothing to check, and no chunk that could be read.
            if not data.size:
                continue
            for place in data.iter_chunks() if data.chunks else [()]:
                data[place]
            with_checksum &= bool(data.fletcher32)
    return "Fletcher-32 of each array" if with_checksum and names else None


def _read_parquet(path: Path) -> str | None:
    from pyarrow import parquet

    from elmo_tasks.embed_job.formats.parquet import checked_rows

    rows = checked_rows(path)
    if rows is not None:
        for _ in rows:
            pass
        return "CRC-32 of each row group"
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group)
    return None


def _read_safetensors(path: Path) -> str | None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            return None
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _read_json(path: Path) -> str | None:
    if not is_sealed(read_json(path)):
        return None
    listed_files(path, read_sealed(path))
    return "SHA-256 of its content"


_READERS: tuple[tuple[tuple[str, ...], Callable[[Path], str | None]], ...] = (
    ((".gz", ".xz"), _read_compressed),
    ((".npz", ".th"), _read_zip),
    ((".hdf5", ".h5"), _read_hdf5),
    ((".parquet",), _read_parquet),
    ((".safetensors",), _read_safetensors),
    ((".json",), _read_json),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to a parser."""
    parser.add_argument("path", type=Path, nargs="+", help="a file, or a folder with all that is below it")
    parser.add_argument("--quiet", action="store_true", help="show only files that are damaged or could not be checked")


def run(arguments: argparse.Namespace) -> None:
    """
    Prints a line for each file.

    # Raises

    `ValueError`
        If a file is damaged or could not be checked, after all others were.
    `FileNotFoundError`
        If there is no such file.
    """
    states: Counter[str] = Counter()
    for finding in (finding for path in arguments.path for finding in verify(path)):
        states[finding.state] += 1
        if finding.state in ("damaged", "unchecked") or not arguments.quiet:
            print(printable(f"{finding.state:9} {finding.path}  ({finding.reason})"))
    n_damaged, n_unchecked, n_files = states["damaged"], states["unchecked"], states.total()
    if n_damaged:
        raise ValueError(f"{n_damaged} of {n_files} files are damaged: restore them, or make them again")
    if n_unchecked:
        raise ValueError(f"{n_unchecked} of {n_files} files could not be checked: install what their lines say")
    if not n_files:
        raise ValueError("there is no file with a checksum, or of a format that can be checked")
