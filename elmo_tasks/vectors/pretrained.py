"""
Files of biLMs: included in this package, in a folder or an archive, on the hub, or downloaded to a
cache.
"""

import logging
import os
import re
import shutil
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from filelock import FileLock
from tqdm import tqdm

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.formats import read_any_options, read_any_weights
from elmo_tasks.bilm.many_langs import model_files
from elmo_tasks.bilm.weights import write_weights
from elmo_tasks.files import shipped
from elmo_tasks.files.archives import expect_regular_file, unpack
from elmo_tasks.files.atomic_files import atomic_file, atomic_folder, remove_leftovers
from elmo_tasks.files.extras import needs
from elmo_tasks.files.json_files import file_digest, text_digest

__all__ = [
    "NAMED_BILMS",
    "TIMEOUT",
    "cache_home",
    "hub_folder",
    "is_hub_name",
    "is_ready",
    "local_file",
]
__all__ += ["pretrained_files", "write_archived"]

logger = logging.getLogger(__name__)

_OPTIONS, _WEIGHTS, _DIGESTS = "options.json", "weights.hdf5", "SHA256SUMS"
_MAX_OPTIONS = 2**20
_AUTHORS = "https://allennlp.s3.amazonaws.com/models/elmo/{0}/elmo_{0}_"
TIMEOUT = 20.0
"""Seconds without an answer after which a download fails."""
# huggingface_hub's variable for mirrors.
_HUB = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*(@.+)?")
_HUB_FILES = ["*options.json", "*.hdf5", "*.safetensors", "weights.th", "vocab.txt"]
# The list in the README of github.com/HIT-SCIR/ELMoForManyLangs. The language codes are ours: `cu`
# is Old Church Slavonic, `grc` is Ancient Greek, `zh` is traditional Chinese.
_LANGUAGES = (
    "ar bg ca cs cu da de el en es et eu fa fi fr ga gl grc he hi hr hu id it ja ko la lv nl nb nn pl pt ro ru sk sl "
    "sv tr ug uk ur vi zh"
)


NAMED_BILMS: dict[str, tuple[str, ...]] = {
    shipped.DEFAULT_BILM: (),
    "small-ko-open-2": (),
    "small": (_AUTHORS.format("2x1024_128_2048cnn_1xhighway"),),
    "medium": (_AUTHORS.format("2x2048_256_2048cnn_1xhighway"),),
    "original": (
        _AUTHORS.format("2x4096_512_2048cnn_2xhighway"),
        f"{_HUB}/lysandre/elmo-2x4096_512_2048cnn_2xhighway/resolve/main/",
    ),
    "original-5.5b": (_AUTHORS.format("2x4096_512_2048cnn_2xhighway_5.5B"),),
}
"""
The addresses of each biLM by name, in the order in which they are tried: the common beginning of
the URLs of `options.json` and `weights.hdf5`, or the URL of an archive. A biLM without an address
is included in the package.
"""
for _number, _language in enumerate(_LANGUAGES.split(), start=136):
    NAMED_BILMS[f"efml-{_language}"] = (f"https://vectors.nlpl.eu/repository/11/{_number}.zip",)


def cache_home() -> Path:
    """
    Where downloaded biLMs are kept, each in its own folder: `ELMO_TASKS_HOME`, or else
    `~/.cache/elmo_tasks`.
    """
    try:
        return Path(os.environ.get("ELMO_TASKS_HOME") or "~/.cache/elmo_tasks").expanduser()
    except RuntimeError:
        raise ValueError(
            "expected a home folder for what is downloaded, got none: set ELMO_TASKS_HOME"
        ) from None


def pretrained_files(bilm: str | PathLike[str]) -> tuple[Path, Path]:
    """
    The option and weight files of a biLM, downloaded or unpacked if necessary.

    # Parameters

    bilm
        A key of `NAMED_BILMS`; a folder with `options.json` and `weights.hdf5`, or the only files
        that end with `options.json` and with `.hdf5` or `.safetensors`; the folder of an
        ELMoForManyLangs model; a zip or tar file of a folder; the archive of an AllenNLP model with
        ELMo; or `org/name` or `org/name@revision` on the Hugging Face hub. A key takes precedence
        over a folder of that name (write `./name`), and a folder over the hub.
    """
    path, name = Path(bilm).expanduser(), str(bilm)
    if isinstance(bilm, str) and bilm in NAMED_BILMS:
        return _downloaded(bilm) if NAMED_BILMS[bilm] else _files_in(shipped.PRETRAINED / bilm)
    if path.is_dir():
        return _files_in(path)
    if path.is_file():
        return _complete(
            cache_home() / "archives" / file_digest(path)[:16], partial(_convert, path)
        )
    if is_hub_name(name):
        return _files_in(hub_folder(name, _HUB_FILES))
    near = get_close_matches(name, NAMED_BILMS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the names are {', '.join(NAMED_BILMS)}"
    raise ValueError(f"'{name}' is neither the name of a biLM nor a folder or an archive: {hint}")


def is_ready(bilm: str) -> bool:
    """
    Whether a biLM is included, downloaded or a folder, so that nothing is fetched or unpacked to
    load it.
    """
    if bilm in NAMED_BILMS:
        return not NAMED_BILMS[bilm] or _is_complete(cache_home() / bilm)
    return Path(bilm).expanduser().is_dir()


def is_hub_name(name: str) -> bool:
    return _HUB_NAME.fullmatch(name) is not None


def hub_folder(name: str, patterns: list[str]) -> Path:
    """
    The folder with the files of `org/name` or `org/name@revision` that match one of the patterns,
    from the cache if the hub does not answer.
    """
    repository, _, revision = name.partition("@")
    problems: list[str] = []
    with needs("hub"):
        from huggingface_hub import snapshot_download
    for local_only in (False, True):
        try:
            options: Any = {"allow_patterns": patterns, "local_files_only": local_only}
            folder = Path(snapshot_download(repository, revision=revision or None, **options))
            if problems:
                logger.warning(
                    "using %s from the cache, because of the answer of the hub: %s",
                    name,
                    problems[0],
                )
            return folder
        # A proxy's refusal, or a login page instead of an answer, raises errors of httpx, of json,
        # or a `KeyError`.
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
    raise ValueError(
        f"'{name}' is not a folder, and there is no usable answer from the hub: {problems[0]}"
    )


def local_file(address: str | PathLike[str]) -> Path:
    """The path of a file that is given by its path or URL. A URL is downloaded on first use."""
    url = os.fspath(address)
    if "://" not in url:
        return Path(url).expanduser()
    file = cache_home() / "addresses" / text_digest(url)[:16] / url.rpartition("/")[2]
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Of several processes, one downloads and the others wait.
            with FileLock(file.parent / ".lock"):
                remove_leftovers(file.parent)
                if not file.exists():
                    with atomic_file(file) as temporary:
                        _download(url, temporary)
        except (OSError, HTTPException) as error:
            raise ConnectionError(f"cannot download {url}: {error}") from error
    return file


def write_archived(weights: Path, options_file: str, folder: Path) -> tuple[Path, Path]:
    """
    Writes the biLM in the weights of an AllenNLP model in the public format. `options_file` is the
    path or address of its options in the model's config, which may be gone. An address is not
    opened.
    """
    options = read_any_options(options_file if os.path.isfile(options_file) else weights)
    options.save(folder / _OPTIONS)
    write_weights(folder / _WEIGHTS, read_any_weights(weights, options), options, compression=None)
    return folder / _OPTIONS, folder / _WEIGHTS


def _download(url: str, file: Path) -> None:
    # Some servers refuse Python's own name.
    with urlopen(Request(url, headers={"User-Agent": "elmo_tasks"}), timeout=TIMEOUT) as answer:
        n_bytes, kind = (
            int(answer.headers.get("Content-Length") or 0),
            answer.headers.get_content_type(),
        )
        # `None`: if stderr is a terminal.
        hidden = None if n_bytes > 20_000_000 else True
        with (
            tqdm.wrapattr(answer, "read", total=n_bytes, disable=hidden) as content,
            open(file, "wb") as target,
        ):
            shutil.copyfileobj(content, target)
    if kind == "text/html" or 0 < n_bytes != file.stat().st_size:
        raise OSError(f"got {file.stat().st_size:,} of {n_bytes:,} bytes of {kind}")


def _downloaded(name: str) -> tuple[Path, Path]:
    """The files of a named biLM, from the cache or from the first address that has them."""
    folder, failures = cache_home() / name, []
    for address in NAMED_BILMS[name]:
        try:
            return _complete(folder, partial(_fetch, address))
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{address}: {error}")
            logger.warning("cannot download %s from %s", name, failures[-1])
    tried = "; ".join(failures)
    raise ConnectionError(
        f"cannot download {name} from {tried}. Put its {_OPTIONS} and {_WEIGHTS} into {folder}"
    )


def _fetch(address: str, folder: Path) -> None:
    archive, options, weights = (folder / name for name in ("model.zip", _OPTIONS, _WEIGHTS))
    is_archive = address.endswith(".zip")
    for file in [archive] if is_archive else [options, weights]:
        _download(address if is_archive else address + file.name, file)
        with open(folder / _DIGESTS, "a") as digests:
            digests.write(f"{file_digest(file)}  {file.name}\n")
    if is_archive:
        _convert(archive, folder)
        archive.unlink()
    # A file of a different kind raises a `ValueError`.
    Bilm.from_files(options, weights)


def _convert(archive: Path, folder: Path) -> None:
    """Writes the biLM of an archive in the public format."""
    unpacked = folder / "unpacked"
    unpack(archive, unpacked)
    file = _only(unpacked, "**/options.json", "**/*options.json", "**/encoder.pkl", "**/weights.th")
    Bilm.from_files(*_files_in(file.parent)).save(folder / _OPTIONS, folder / _WEIGHTS)
    shutil.rmtree(unpacked)


def _complete(folder: Path, fill: Callable[[Path], None]) -> tuple[Path, Path]:
    """The files of a biLM in a folder of the cache, which `fill` writes if they are missing."""
    if not _is_complete(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Of several processes, one writes them and the others wait.
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not _is_complete(folder):
                with atomic_folder(folder, (_OPTIONS, _WEIGHTS, _DIGESTS)) as made:
                    fill(made)
    return _files_in(folder)


def _is_complete(folder: Path) -> bool:
    return all(file.exists() for file in _files_in(folder))


def _files_in(folder: Path) -> tuple[Path, Path]:
    """
    The option and weight files in a folder, which somebody else may have written. They may be
    missing.
    """
    options, weights = _unchecked_files_in(folder)
    for file in (options, weights):
        if file.exists():
            expect_regular_file(file)
    if options.suffix == ".json" and options.exists() and options.stat().st_size > _MAX_OPTIONS:
        raise ValueError(f"expected at most {_MAX_OPTIONS:,} bytes of options: {options}")
    return options, weights


def _unchecked_files_in(folder: Path) -> tuple[Path, Path]:
    if (files := model_files(folder)) is not None:
        # Its options name others.
        for file in folder.glob("*.*"):
            expect_regular_file(file)
        return files
    options, state = (
        _only(folder, _OPTIONS, "*options.json"),
        _only(folder, "weights.th", "best.th"),
    )
    if state.exists() and not options.exists():
        return state, state
    return options, _only(folder, _WEIGHTS, "weights.safetensors", "*.hdf5", "*.safetensors")


def _only(folder: Path, *patterns: str) -> Path:
    """The file that matches the first pattern with a match. Without a match, a missing file."""
    for pattern in patterns:
        files = sorted(file for file in folder.glob(pattern) if not file.name.startswith("_tmp-"))
        if len(files) > 1:
            raise ValueError(f"expected one file {pattern}, got {', '.join(map(str, files))}")
        if files:
            return files[0]
    return folder / Path(patterns[0]).name
