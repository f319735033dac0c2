"""Files of biLMs: included in this package, in a folder, or downloaded to a cache."""

import os
import zipfile
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from elmo_tasks import shipped
from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.many_langs import model_files
from elmo_tasks.files.atomic_files import atomic_folder

__all__ = ["NAMED_BILMS", "cache_home", "downloaded", "pretrained_files", "weight_file_in"]

_OPTIONS, _WEIGHTS, _SAFETENSORS = "options.json", "weights.hdf5", "weights.safetensors"
_AUTHORS = "https://allennlp.s3.amazonaws.com/models/elmo"
# The list in the README of github.com/HIT-SCIR/ELMoForManyLangs. The language codes are ours: `cu` is Old Church
# Slavonic, `grc` is Ancient Greek, `zh` is traditional Chinese.
_MANY_LANGS = "https://vectors.nlpl.eu/repository/11"
_LANGUAGES = (
    "ar bg ca cs cu da de el en es et eu fa fi fr ga gl grc he hi hr hu id it ja ko la lv nl nb nn pl pt ro ru sk sl "
    "sv tr ug uk ur vi zh"
)


def _of_authors(name: str) -> str:
    return f"{_AUTHORS}/{name}/elmo_{name}_"


NAMED_BILMS: dict[str, str | None] = {
    shipped.DEFAULT_BILM: None,
    "small-ko-open": None,
    "small": _of_authors("2x1024_128_2048cnn_1xhighway"),
    "medium": _of_authors("2x2048_256_2048cnn_1xhighway"),
    "original": _of_authors("2x4096_512_2048cnn_2xhighway"),
    "original-5.5b": _of_authors("2x4096_512_2048cnn_2xhighway_5.5B"),
    **{
        f"efml-{language}": f"{_MANY_LANGS}/{number}.zip"
        for number, language in enumerate(_LANGUAGES.split(), start=136)
    },
}
"""
The address of each biLM by name: the common beginning of the URLs of `options.json` and `weights.hdf5`, or the URL of
an ELMoForManyLangs archive. `None`: it is included in the package.
"""


def cache_home() -> Path:
    """Where downloaded biLMs are kept, each in its own folder: `ELMO_TASKS_HOME`, or else `~/.cache/elmo_tasks`."""
    return Path(os.environ.get("ELMO_TASKS_HOME") or "~/.cache/elmo_tasks").expanduser()


def pretrained_files(bilm: str | PathLike[str]) -> tuple[Path, Path]:
    """
    The option and weight files of a biLM, downloaded if necessary. The authors published no digests of their weights.

    # Parameters

    bilm
        A key of `NAMED_BILMS`; or a folder with `options.json` and `weights.hdf5`, or with the files of a model of
        ELMoForManyLangs. A known name takes precedence over a folder of that name; write `./name` for the folder.
    """
    if not isinstance(bilm, str) or bilm not in NAMED_BILMS:
        return _files_in(Path(bilm).expanduser())
    address, folder = NAMED_BILMS[bilm], cache_home() / bilm
    if address is None:
        return _files_in(shipped.PRETRAINED / bilm)
    if address.endswith(".zip"):
        if not folder.exists():
            _convert_archive(address, folder)
        return _files_in(folder)
    options_file, weight_file = (downloaded(f"{address}{name}", folder / name) for name in (_OPTIONS, _WEIGHTS))
    return options_file, weight_file


def downloaded(url: str, file: Path) -> Path:
    """The file, downloaded if it does not exist."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(url, str(file))
        except OSError as error:
            raise ConnectionError(f"cannot download {url} to {file} ({error})") from error
    return file


def _convert_archive(url: str, folder: Path) -> None:
    """Downloads the archive of an ELMoForManyLangs model and writes its biLM in the public format."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as work:
        with zipfile.ZipFile(downloaded(url, Path(work, "model.zip"))) as archive:
            archive.extractall(work)
        bilm = Bilm.from_files(*_files_in(Path(work)))
        with atomic_folder(folder) as made:
            bilm.save(made / _OPTIONS, made / _WEIGHTS)


def _files_in(folder: Path) -> tuple[Path, Path]:
    if not folder.is_dir():
        near = get_close_matches(str(folder), NAMED_BILMS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the names are {', '.join(NAMED_BILMS)}"
        raise ValueError(f"'{folder}' is neither the name of a biLM nor a folder: {hint}")
    return model_files(folder) or (folder / _OPTIONS, weight_file_in(folder))


def weight_file_in(folder: Path) -> Path:
    """The weight file in the folder of a biLM: HDF5, or safetensors or ELMoForManyLangs' file if only these exist."""
    if (of_many_langs := model_files(folder)) is not None:
        return of_many_langs[1]
    safetensors = folder / _SAFETENSORS
    return safetensors if safetensors.is_file() and not (folder / _WEIGHTS).exists() else folder / _WEIGHTS
