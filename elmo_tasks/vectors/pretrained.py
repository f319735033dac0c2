"""Files of biLMs: shipped with this package, in a folder, or on their authors' server and then in a cache."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from elmo_tasks import shipped
from elmo_tasks.bilm.many_langs import model_files
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.weights import read_weights
from elmo_tasks.files.checksums import check_file, checksum_path, sha256_of, write_checksum
from elmo_tasks.files.ownership import check_ownership
from elmo_tasks.vectors.download import download
from elmo_tasks.vectors.many_langs import ARCHIVES, make_from_archive

__all__ = [
    "ENGLISH",
    "MAX_OPTIONS_BYTES",
    "NAMED_BILMS",
    "NamedBilm",
    "cache_home",
    "cached_file",
    "max_weight_bytes",
    "pretrained_files",
    "weight_file_in",
]

_OPTIONS, _WEIGHTS, _SAFETENSORS = "options.json", "weights.hdf5", "weights.safetensors"
_SERVER = "https://allennlp.s3.amazonaws.com/models/elmo"
MAX_OPTIONS_BYTES = 2**20
# What HDF5 adds to the weights, which are at most float32.
_MAX_OVERHEAD_BYTES = 2**24

ENGLISH = frozenset({"LATIN"})
"""The scripts of English: foreign words and names in its text are too few to learn from."""


@dataclass(frozen=True, kw_only=True)
class NamedBilm:
    """
    A biLM with a name.

    # Parameters

    url
        The beginning of the URLs of its files, up to `options.json` and `weights.hdf5`. `None`: it is shipped.
    sha256
        Pairs of a file and its digest, as far as they are known. The authors published none.
    archive
        Where the archive of a model of ELMoForManyLangs is, in place of `url`.
    scripts
        The scripts of the text that it was trained on, named as in `letters_by_script`; `None` if they are not known.
    """

    url: str | None = None
    sha256: tuple[tuple[str, str], ...] = ()
    archive: str | None = None
    scripts: frozenset[str] | None = ENGLISH

    @property
    def is_shipped(self) -> bool:
        """Whether its files come with this package."""
        return self.url is None and self.archive is None


def _published(name: str) -> NamedBilm:
    return NamedBilm(url=f"{_SERVER}/{name}/elmo_{name}_")


NAMED_BILMS = {
    "small-open": NamedBilm(),
    # 3% of the letters of its text are Latin.
    "small-ko-open": NamedBilm(scripts=frozenset({"HANGUL"})),
    "small": _published("2x1024_128_2048cnn_1xhighway"),
    "medium": _published("2x2048_256_2048cnn_1xhighway"),
    "original": _published("2x4096_512_2048cnn_2xhighway"),
    "original-5.5b": _published("2x4096_512_2048cnn_2xhighway_5.5B"),
    **{f"efml-{language}": NamedBilm(archive=url, scripts=None) for language, url in ARCHIVES.items()},
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
        A key of `NAMED_BILMS`; or a folder with `options.json` and `weights.hdf5`, or with the files of a model of
        ELMoForManyLangs. A known name takes precedence over a folder of that name; write `./name` for the folder.

    # Returns

    `Tuple[Path, Path]`
        The options and the weights, in one folder: see `Bilm.from_files`.

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
        if isinstance(bilm, str) and "://" in bilm:
            raise ValueError(
                f"a biLM must be a name or a folder here, but is the URL {bilm!r}: download {_OPTIONS} and {_WEIGHTS} "
                "into a folder, and give that"
            )
        return _files_in(Path(bilm).expanduser())
    known = NAMED_BILMS[bilm]
    if known.is_shipped:
        return _files_in(shipped.PRETRAINED / bilm)
    folder = cache_home() / bilm
    if known.archive is not None:
        _make_from_archive(bilm, known.archive, folder)
    what, digests = f"the biLM {bilm!r}", dict(known.sha256)
    options_file = cached_file(
        f"{known.url}{_OPTIONS}",
        folder / _OPTIONS,
        what=what,
        max_bytes=MAX_OPTIONS_BYTES,
        check=BilmOptions.from_file,
        sha256=digests.get(_OPTIONS),
    )
    options = BilmOptions.from_file(options_file)
    weight_file = cached_file(
        f"{known.url}{_WEIGHTS}",
        folder / _WEIGHTS,
        what=what,
        max_bytes=max_weight_bytes(options),
        check=partial(read_weights, options=options),
        sha256=digests.get(_WEIGHTS),
    )
    return options_file, weight_file


def max_weight_bytes(options: BilmOptions) -> int:
    """The most bytes that the file with the weights of a biLM can have."""
    return 4 * options.n_parameters + _MAX_OVERHEAD_BYTES


def _make_from_archive(bilm: str, url: str, folder: Path) -> None:
    """Puts what is in the archive of a model of ELMoForManyLangs into the cache, in the public format."""
    if folder.exists():
        check_ownership(folder)
    if all((folder / name).is_file() for name in (_OPTIONS, _WEIGHTS)):
        return
    try:
        make_from_archive(url, folder, (_OPTIONS, _WEIGHTS))
    except ConnectionError as error:
        raise ConnectionError(
            f"the biLM {bilm!r} is not in the cache, '{folder}', and {error}. Remedy: connect to the network; or "
            "unpack the archive from elsewhere, and give the folder that it is in"
        ) from error


def _files_in(folder: Path) -> tuple[Path, Path]:
    if not folder.is_dir():
        names = [name for name, known in NAMED_BILMS.items() if known.archive is None]
        raise ValueError(
            f"a biLM must be one of {', '.join(names)}, or a folder with {_OPTIONS} and {_WEIGHTS}, but '{folder}' is "
            f"neither; those of ELMoForManyLangs are efml-{', efml-'.join(ARCHIVES)}"
        )
    if (of_many_langs := model_files(folder)) is not None:
        return of_many_langs
    files = folder / _OPTIONS, weight_file_in(folder)
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(
                f"the folder of a biLM must have {_OPTIONS} and {_WEIGHTS} (or {_SAFETENSORS}), but '{folder}' has no "
                f"{file.name}: files of other names can be given one by one (Elmo.from_files)"
            )
    return files


def weight_file_in(folder: Path) -> Path:
    """
    The weights in the folder of a biLM: HDF5, or safetensors if only these are there, or the `encoder.pkl` of a model
    of ELMoForManyLangs.
    """
    if (of_many_langs := model_files(folder)) is not None:
        return of_many_langs[1]
    safetensors = folder / _SAFETENSORS
    return safetensors if safetensors.is_file() and not (folder / _WEIGHTS).exists() else folder / _WEIGHTS


def cached_file(
    url: str,
    file: Path,
    *,
    what: str,
    max_bytes: int,
    check: Callable[[Path], object],
    sha256: str | None = None,
) -> Path:
    """
    A file of the cache, downloaded if it is not there, and checked if it is.

    # Parameters

    url
        Where it is.
    file
        Where it is kept.
    what
        The biLM, for messages.
    max_bytes, check, sha256
        See `download`.

    # Returns

    `Path`
        The file.

    # Raises

    See `pretrained_files`.
    """
    record = checksum_path(file)
    for path in (file.parent, file, record):
        if path.exists():
            check_ownership(path)
    if not file.is_file():
        try:
            download(url, file, max_bytes=max_bytes, check=check, sha256=sha256)
        except ConnectionError as error:
            raise ConnectionError(
                f"{what} is not in the cache, '{file.parent}', and {error}. Remedy: connect to the network; "
                f"or put {_OPTIONS} and {_WEIGHTS} there from elsewhere; or use 'small-open', which needs no network"
            ) from error
    elif sha256 is None and not record.exists():
        check(file)
    try:
        if sha256 is not None and (digest := sha256_of(file)) != sha256:
            raise ValueError(f"the SHA-256 of '{file}' must be {sha256}, but is {digest}")
        if sha256 is None and not check_file(file):
            write_checksum(file)
            record.chmod(0o644)
    except ValueError as error:
        raise ValueError(
            f"{error}. If it was downloaded, remove the folder '{file.parent}', and it is downloaded again"
        ) from error
    return file
