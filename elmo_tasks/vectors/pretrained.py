"""Files of biLMs: shipped with this package, in a folder, or on the authors' server and then in a cache."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from elmo_tasks import shipped
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.weights import read_weights
from elmo_tasks.files.checksums import check_file, checksum_path, sha256_of, write_checksum
from elmo_tasks.files.ownership import check_ownership
from elmo_tasks.vectors.download import download

__all__ = ["NAMED_BILMS", "NamedBilm", "cache_home", "pretrained_files", "weight_file_in"]

_OPTIONS, _WEIGHTS, _SAFETENSORS = "options.json", "weights.hdf5", "weights.safetensors"
_SERVER = "https://allennlp.s3.amazonaws.com/models/elmo"
_MAX_OPTIONS_BYTES = 2**20
# What HDF5 adds to the weights, which are at most float32.
_MAX_OVERHEAD_BYTES = 2**24


@dataclass(frozen=True, kw_only=True)
class NamedBilm:
    """
    A biLM with a name.

    # Parameters

    url
        The beginning of the URLs of its files, up to `options.json` and `weights.hdf5`. `None`: it is shipped.
    sha256
        Pairs of a file and its digest, as far as they are known. The authors published none.
    """

    url: str | None = None
    sha256: tuple[tuple[str, str], ...] = ()


def _published(name: str) -> NamedBilm:
    return NamedBilm(url=f"{_SERVER}/{name}/elmo_{name}_")


NAMED_BILMS = {
    "small-open": NamedBilm(),
    "small": _published("2x1024_128_2048cnn_1xhighway"),
    "medium": _published("2x2048_256_2048cnn_1xhighway"),
    "original": _published("2x4096_512_2048cnn_2xhighway"),
    "original-5.5b": _published("2x4096_512_2048cnn_2xhighway_5.5B"),
}


def cache_home() -> Path:
    """Where downloaded biLMs are kept, a folder each: `ELMO_TASKS_HOME`, or else `~/.cache/elmo_tasks`."""
    return Path(os.environ.get("ELMO_TASKS_HOME") or "~/.cache/elmo_tasks").expanduser()


def pretrained_files(bilm: str | PathLike[str]) -> tuple[Path, Path]:
    """
    The files of a biLM, downloaded if necessary.

    The authors published no digests of their weights. So the SHA-256 of a file is written next to it when it is first
    downloaded (or first used, if you put it there), and each later use checks the file against it: that finds files
    that were damaged or replaced afterwards, not a server that sent another biLM the first time. Before it is written,
    the options are read, and the weights are compared with them.

    # Parameters

    bilm
        A key of `NAMED_BILMS`, or a folder with `options.json` and `weights.hdf5`. A known name takes precedence over a
        folder of that name; write `./name` for the folder.

    # Returns

    `Tuple[Path, Path]`
        The options and the weights, in one folder.

    # Raises

    `ValueError`
        If it is neither, or a file in the cache has changed since it was first used or is not that of a biLM.
    `FileNotFoundError`
        If a folder lacks one of the two.
    `PermissionError`
        If other users could have written to the cache: see `check_ownership`.
    `ConnectionError`
        If a biLM is not in the cache and cannot be downloaded.
    """
    if not isinstance(bilm, str) or bilm not in NAMED_BILMS:
        return _files_in(Path(bilm).expanduser())
    if NAMED_BILMS[bilm].url is None:
        return _files_in(shipped.PRETRAINED / bilm)
    options_file = _cached(bilm, _OPTIONS, _MAX_OPTIONS_BYTES, BilmOptions.from_file)
    options = BilmOptions.from_file(options_file)
    max_bytes = 4 * options.n_parameters + _MAX_OVERHEAD_BYTES
    return options_file, _cached(bilm, _WEIGHTS, max_bytes, partial(read_weights, options=options))


def _files_in(folder: Path) -> tuple[Path, Path]:
    if not folder.is_dir():
        raise ValueError(
            f"a biLM must be one of {', '.join(NAMED_BILMS)}, or a folder with {_OPTIONS} and {_WEIGHTS}, but "
            f"'{folder}' is neither"
        )
    files = folder / _OPTIONS, weight_file_in(folder)
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(
                f"the folder of a biLM must have {_OPTIONS} and {_WEIGHTS} (or {_SAFETENSORS}), but '{folder}' has no "
                f"{file.name}: files of other names can be given one by one (Elmo.from_files)"
            )
    return files


def weight_file_in(folder: Path) -> Path:
    """The weights in the folder of a biLM: HDF5, or safetensors if only these are there."""
    safetensors = folder / _SAFETENSORS
    return safetensors if safetensors.is_file() and not (folder / _WEIGHTS).exists() else folder / _WEIGHTS


def _cached(name: str, file_name: str, max_bytes: int, check: Callable[[Path], object]) -> Path:
    """The file in the cache, downloaded if it is not there, checked if it is."""
    known = NAMED_BILMS[name]
    file = cache_home() / name / file_name
    record = checksum_path(file)
    for path in (file.parent, file, record):
        if path.exists():
            check_ownership(path)
    expected = dict(known.sha256).get(file_name)
    if not file.is_file():
        try:
            download(f"{known.url}{file_name}", file, max_bytes=max_bytes, check=check, sha256=expected)
        except ConnectionError as error:
            raise ConnectionError(
                f"the biLM {name!r} is not in the cache, '{file.parent}', and {error}. Remedy: connect to the network; "
                f"or put {_OPTIONS} and {_WEIGHTS} there from elsewhere; or use 'small-open', which needs no network"
            ) from error
    elif expected is None and not record.exists():
        check(file)
    try:
        if expected is not None and (digest := sha256_of(file)) != expected:
            raise ValueError(f"the SHA-256 of '{file}' must be {expected}, but is {digest}")
        if expected is None and not check_file(file):
            write_checksum(file)
            record.chmod(0o644)
    except ValueError as error:
        raise ValueError(
            f"{error}. If it was downloaded, remove the folder '{file.parent}', and it is downloaded again"
        ) from error
    return file
