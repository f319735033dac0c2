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
    "pretrained_files",
    "write_archived",
]

logger = logging.getLogger(__name__)

_OPTIONS = "options.json"
_WEIGHTS = "weights.hdf5"
_DIGESTS = "SHA256SUMS"
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
    "ar bg ca cs cu da de el en es et eu fa fi fr ga gl grc he hi hr hu id it ja ko la lv nl nb "
    "nn pl pt ro ru sk sl sv tr ug uk ur vi zh"
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
    if isinstance(bilm, str) and bilm in NAMED_BILMS:
        if NAMED_BILMS[bilm]:
            return _downloaded(bilm)
        return _files_in(shipped.PRETRAINED / bilm)
    path = Path(bilm).expanduser()
    if path.is_dir():
        return _files_in(path)
    if path.is_file():
        folder = cache_home() / "archives" / file_digest(path)[:16]
        return _complete(folder, partial(_convert, path))
    name = str(bilm)
    if is_hub_name(name):
        return _files_in(hub_folder(name, _HUB_FILES))
    hint = f"the names are {', '.join(NAMED_BILMS)}"
    similar_names = get_close_matches(name, NAMED_BILMS, n=1)
    if similar_names:
        hint = f"did you mean {similar_names[0]}?"
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
    with needs("hub"):
        from huggingface_hub import snapshot_download
    snapshot = partial(
        snapshot_download, repository, revision=revision or None, allow_patterns=patterns
    )
    try:
        return Path(snapshot())
    # A proxy's refusal, or a login page instead of an answer, raises errors of httpx, of json, or a
    # `KeyError`.
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    try:
        folder = Path(snapshot(local_files_only=True))
    except Exception:
        message = "is not a folder, and there is no usable answer from the hub"
        raise ValueError(f"'{name}' {message}: {problem}") from None
    logger.warning("using %s from the cache, because of the answer of the hub: %s", name, problem)
    return folder


def local_file(address: str | PathLike[str]) -> Path:
    """The path of a file that is given by its path or URL. A URL is downloaded on first use."""
    url = os.fspath(address)
    if "://" not in url:
        return Path(url).expanduser()
    folder = cache_home() / "addresses" / text_digest(url)[:16]
    file = folder / url.rpartition("/")[2]
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            # One process downloads, and the others wait for it.
            with FileLock(folder / ".lock"):
                remove_leftovers(folder)
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
    if os.path.isfile(options_file):
        options = read_any_options(options_file)
    else:
        options = read_any_options(weights)
    options.save(folder / _OPTIONS)
    arrays = read_any_weights(weights, options)
    write_weights(folder / _WEIGHTS, arrays, options, compression=None)
    return folder / _OPTIONS, folder / _WEIGHTS


def _download(url: str, file: Path) -> None:
    # Some servers refuse Python's own name.
    request = Request(url, headers={"User-Agent": "elmo_tasks"})
    with urlopen(request, timeout=TIMEOUT) as answer:
        n_expected = int(answer.headers.get("Content-Length") or 0)
        content_type = answer.headers.get_content_type()
        # `None`: unless stderr is a terminal.
        is_hidden = None if n_expected > 20_000_000 else True
        with (
            tqdm.wrapattr(answer, "read", total=n_expected, disable=is_hidden) as content,
            open(file, "wb") as target,
        ):
            shutil.copyfileobj(content, target)
    n_bytes = file.stat().st_size
    is_incomplete = n_expected > 0 and n_bytes != n_expected
    if content_type == "text/html" or is_incomplete:
        raise OSError(f"got {n_bytes:,} of {n_expected:,} bytes of {content_type}")


def _downloaded(name: str) -> tuple[Path, Path]:
    """The files of a named biLM, from the cache or from the first address that has them."""
    folder = cache_home() / name
    failures = []
    for address in NAMED_BILMS[name]:
        try:
            return _complete(folder, partial(_fetch, address))
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{address}: {error}")
            logger.warning("cannot download %s from %s", name, failures[-1])
    hint = f"Put its {_OPTIONS} and {_WEIGHTS} into {folder}"
    raise ConnectionError(f"cannot download {name} from {'; '.join(failures)}. {hint}")


def _fetch(address: str, folder: Path) -> None:
    if address.endswith(".zip"):
        archive = folder / "model.zip"
        _download_with_digest(address, archive)
        _convert(archive, folder)
        archive.unlink()
    else:
        for name in (_OPTIONS, _WEIGHTS):
            _download_with_digest(address + name, folder / name)
    # A file of a different kind raises a `ValueError`.
    Bilm.from_files(folder / _OPTIONS, folder / _WEIGHTS)


def _download_with_digest(url: str, file: Path) -> None:
    _download(url, file)
    with open(file.with_name(_DIGESTS), "a") as digests:
        digests.write(f"{file_digest(file)}  {file.name}\n")


def _convert(archive: Path, folder: Path) -> None:
    """Writes the biLM of an archive in the public format."""
    unpacked = folder / "unpacked"
    unpack(archive, unpacked)
    file = _only(unpacked, "**/options.json", "**/*options.json", "**/encoder.pkl", "**/weights.th")
    options_file, weight_file = _files_in(file.parent)
    bilm = Bilm.from_files(options_file, weight_file)
    bilm.save(folder / _OPTIONS, folder / _WEIGHTS)
    shutil.rmtree(unpacked)


def _complete(folder: Path, fill: Callable[[Path], None]) -> tuple[Path, Path]:
    """The files of a biLM in a folder of the cache, which `fill` writes if they are missing."""
    if not _is_complete(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # One process writes them, and the others wait for it.
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
    files_of_many_langs = model_files(folder)
    if files_of_many_langs is not None:
        # Its options name other files.
        for file in folder.glob("*.*"):
            expect_regular_file(file)
        return files_of_many_langs
    options = _only(folder, _OPTIONS, "*options.json")
    state = _only(folder, "weights.th", "best.th")
    if state.exists() and not options.exists():
        return state, state
    return options, _only(folder, _WEIGHTS, "weights.safetensors", "*.hdf5", "*.safetensors")


def _only(folder: Path, *patterns: str) -> Path:
    """
    The file that matches the first pattern with a match; several such files are an error. Without
    any match, a path that does not exist.
    """
    for pattern in patterns:
        paths = sorted(folder.glob(pattern))
        files = [path for path in paths if not path.name.startswith("_tmp-")]
        if len(files) > 1:
            raise ValueError(f"expected one file {pattern}, got {', '.join(map(str, files))}")
        if files:
            return files[0]
    return folder / Path(patterns[0]).name
