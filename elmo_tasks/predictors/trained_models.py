"""Files of trained tasks: in the checkout, in a folder or archive, on the hub, or at an address."""

import os
import re
import shutil
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_tasks.files.archives import unpack
from elmo_tasks.files.shipped import MODELS
from elmo_tasks.vectors.pretrained import hub_folder, is_hub_name, local_file
from elmo_tasks.version import RELEASE

__all__ = ["copy_model", "licence_of", "local_model", "name_of", "path_of_trained_model"]

_HUB_FILES = ["config.json", "meta.json", "weights.th", "vocabulary/*", "model.tar.gz"]
_MAX_CARD = 2**20
_NAMES = ("coref", "ner", "pos", "snli", "squad", "srl", "sst")


def path_of_trained_model(model: str | PathLike[str]) -> Path:
    """
    The folder or the archive of a trained task, downloaded if necessary: a name in `models/` of the
    checkout (`ner` or `models/ner`), a path, an address, or `org/name` or `org/name@revision` on
    the Hugging Face hub.
    """
    name = os.fspath(model)
    path = local_model(name)
    if path is not None:
        return path
    if "://" in name:
        return local_file(name)
    if is_hub_name(name) and not name.startswith("models/"):
        folder = hub_folder(name, _HUB_FILES)
        if (folder / "config.json").exists():
            return folder
        return folder / "model.tar.gz"
    raise ValueError(_not_found(name))


def local_model(model: str | PathLike[str]) -> Path | None:
    """The folder or the archive of a model on this machine: in the checkout, or a path."""
    name = os.fspath(model)
    folder_in_checkout = MODELS / name.removeprefix("models/")
    if folder_in_checkout.is_dir():
        return folder_in_checkout
    path = Path(name).expanduser()
    # Neither a pipe nor a device.
    return path if path.is_dir() or path.is_file() else None


def copy_model(model: Path, target: Path) -> None:
    """
    Copies the files of a model from its folder or archive: config, version, card, weights and
    vocabulary. No other files, such as code, and a link that leads out of the folder is an error:
    publishing a model of somebody else must not publish the user's files.
    """
    if model.is_file():
        with TemporaryDirectory() as temporary:
            unpack(model, Path(temporary))
            copy_model(Path(temporary), target)
        return
    sources = {name: model / name for name in ("config.json", "meta.json", "README.md")}
    weights = model / "weights.th"
    sources["weights.th"] = weights if weights.exists() else model / "best.th"
    for file in (model / "vocabulary").glob("*.txt"):
        sources[f"vocabulary/{file.name}"] = file
    (target / "vocabulary").mkdir()
    for name, file in sources.items():
        if file.exists():
            shutil.copyfile(_resolved_inside(model, file), target / name)


def _resolved_inside(folder: Path, file: Path) -> Path:
    """The target of a link, which must be in the folder, or in a cache of the hub next to it."""
    path = file.resolve()
    folder = folder.resolve()
    allowed = [folder]
    if folder.parent.name == "snapshots":
        allowed.append(folder.parent.with_name("blobs"))
    is_inside = any(path.is_relative_to(parent) for parent in allowed)
    if not is_inside or not path.is_file():
        raise ValueError(f"expected a file of the model, got a link to {path}: {file}")
    return path


def licence_of(folder: Path) -> str:
    """The licence of a model, from its card; empty if it is unknown."""
    card = folder / "README.md"
    if not card.is_file():
        return ""
    with open(card, encoding="utf-8") as file:
        licence = re.search(r"^license: *(\S+)", file.read(_MAX_CARD), re.MULTILINE)
    return licence[1] if licence else ""


def name_of(path: Path) -> str:
    """The name of a model: that of its folder or archive."""
    path = path.resolve()
    if path.name == "model.tar.gz":
        return path.parent.name
    return path.name.removesuffix(".tar.gz")


def _not_found(name: str) -> str:
    short = name.removeprefix("models/")
    if short in _NAMES:
        hint = f"a checkout has it in models/{short}: copy this folder, and give its path"
        if RELEASE:
            hint = f"download {RELEASE}/{short}.tar.gz, and give the path of this file"
        return f"the trained model '{short}' is not part of the installed package: {hint}"
    names = sorted({folder.name for folder in MODELS.glob("*/")}.union(_NAMES))
    near = get_close_matches(short, names, n=1)
    hint = f"the names are {', '.join(names)}"
    if near:
        hint = f"did you mean {near[0]}? The names are {', '.join(names)}"
    return f"'{name}' is neither a trained model nor a folder or an archive: {hint}"
