"""Where biLMs are: with this package, in a folder, or on the authors' server and then in a cache."""

import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from elmo_tasks.shipped import PRETRAINED as PRETRAINED_FOLDER
from elmo_tasks.vectors.download import download, file_digest

__all__ = ["PRETRAINED", "Pretrained", "cache_home", "pretrained_files"]

_OPTIONS, _WEIGHTS = "options.json", "weights.hdf5"
_SERVER = "https://allennlp.s3.amazonaws.com/models/elmo"


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """
    A biLM with a name.

    # Parameters

    url : `str`, optional (default = `None`)
        What the URLs of its files begin with, up to `options.json` and `weights.hdf5`. `None`: it is shipped.
    sha256 : `Mapping[str, str]`
        The digests of its files, as far as they are known. The authors published none.
    """

    url: str | None = None
    sha256: tuple[tuple[str, str], ...] = ()


def _published(name: str) -> Pretrained:
    return Pretrained(url=f"{_SERVER}/{name}/elmo_{name}_")


PRETRAINED = {
    "small-open": Pretrained(),
    "small": _published("2x1024_128_2048cnn_1xhighway"),
    "medium": _published("2x2048_256_2048cnn_1xhighway"),
    "original": _published("2x4096_512_2048cnn_2xhighway"),
    "original-5.5b": _published("2x4096_512_2048cnn_2xhighway_5.5B"),
}
"""The biLMs that can be named."""


def cache_home() -> Path:
    """Where downloaded biLMs are kept, a folder each: `ELMO_TASKS_HOME`, or else `~/.cache/elmo_tasks`."""
    return Path(os.environ.get("ELMO_TASKS_HOME") or "~/.cache/elmo_tasks").expanduser()


def pretrained_files(name_or_folder: str | PathLike[str]) -> tuple[Path, Path]:
    """
    The files of a biLM, downloaded if need be. A name goes before a folder of that name, which can be given as
    `./name`.

    The authors published no digests of their weights. So the SHA-256 of a file is written beside it when it is first
    downloaded (or first used, if you put it there), and each later use checks the file against it: that finds files
    that were damaged or exchanged afterwards, not a server that sent something else the first time.

    # Parameters

    name_or_folder : `str`
        A name of `PRETRAINED`, or a folder with `options.json` and `weights.hdf5`.

    # Returns

    `Tuple[Path, Path]`
        The options and the weights.

    # Raises

    `ValueError`
        If it is neither, or a file in the cache is not what it was.
    `FileNotFoundError`
        If a folder lacks one of the two.
    `ConnectionError`
        If a biLM is not in the cache and cannot be downloaded.
    """
    known = PRETRAINED.get(name_or_folder) if isinstance(name_or_folder, str) else None
    if known is None:
        return _files_in(Path(name_or_folder).expanduser())
    name = str(name_or_folder)
    if known.url is None:
        return _files_in(PRETRAINED_FOLDER / name)
    options_file, weight_file = (_cached(name, known, file) for file in (_OPTIONS, _WEIGHTS))
    return options_file, weight_file


def _files_in(folder: Path) -> tuple[Path, Path]:
    if not folder.is_dir():
        raise ValueError(
            f"a biLM must be one of {', '.join(PRETRAINED)}, or a folder with {_OPTIONS} and {_WEIGHTS}, but "
            f"'{folder}' is neither"
        )
    files = folder / _OPTIONS, folder / _WEIGHTS
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(
                f"the folder of a biLM must have {_OPTIONS} and {_WEIGHTS}, but '{folder}' has no {file.name}: files "
                "of other names can be given one by one (Elmo.from_files)"
            )
    return files


def _cached(name: str, known: Pretrained, file_name: str) -> Path:
    """The file in the cache, downloaded if it is not there, checked if it is."""
    file = cache_home() / name / file_name
    record = file.with_name(f"{file_name}.sha256")
    expected = dict(known.sha256).get(file_name)
    if not file.is_file():
        try:
            digest = download(f"{known.url}{file_name}", file, expected)
        except ConnectionError as error:
            raise ConnectionError(
                f"the biLM {name!r} is not in the cache, '{file.parent}', and {error}. Remedy: connect to the network; "
                f"or put {_OPTIONS} and {_WEIGHTS} there from elsewhere; or take 'small-open', which needs no network"
            ) from error
        _write_record(record, digest, file_name)
        return file
    digest = file_digest(file)
    if expected is None and record.is_file():
        expected = record.read_text(encoding="ascii").split(maxsplit=1)[0]
    if expected is None:
        _write_record(record, digest, file_name)
    elif digest != expected:
        raise ValueError(
            f"the SHA-256 of '{file}' must be {expected}, but is {digest}: the file was damaged or exchanged. Remedy: "
            f"remove the folder '{file.parent}', and it is downloaded again"
        )
    return file


def _write_record(record: Path, digest: str, file_name: str) -> None:
    # In the form that `sha256sum --check` reads.
    part = record.with_name(f"{record.name}.{os.getpid()}.part")
    part.write_text(f"{digest}  {file_name}\n", encoding="ascii")
    part.replace(record)
