"""
Files of trained tasks: in the checkout, installed by pip, in a folder or archive, on the hub, or at
an address.
"""

import os
import re
import shutil
from difflib import get_close_matches
from importlib.metadata import entry_points
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_tasks.files.archives import unpack
from elmo_tasks.shipped import MODELS
from elmo_tasks.vectors.pretrained import hub_folder, is_hub_name, local_file
from elmo_tasks.version import RELEASE, __version__

__all__ = ["MODEL_GROUP", "copy_model", "licence_of", "local_model", "name_of", "trained_model"]
__all__ += ["wheel_name"]

MODEL_GROUP = "elmo_tasks.models"
"""
The entry points of wheels of models: the name for `TrainedTask`, and the package with the files.
"""

_HUB_FILES = ["config.json", "meta.json", "weights.th", "vocabulary/*", "model.tar.gz"]
_MAX_CARD = 2**20
_NAMES = ("coref", "ner", "pos", "snli", "squad", "srl", "sst")


def wheel_name(name: str) -> str:
    """The distribution, and the package in it, of a trained model's wheel."""
    return f"elmo_tasks_{name}"


def trained_model(model: str | PathLike[str]) -> Path:
    """
    The folder or the archive of a trained task, downloaded if necessary: a name in `models/` of the
    checkout (`ner` or `models/ner`) or of a wheel that `python -m elmo_tasks package` made, a path,
    an address, or `org/name` or `org/name@revision` on the Hugging Face hub.
    """
    name = os.fspath(model)
    if (path := local_model(name)) is not None:
        return path
    if "://" in name:
        return local_file(name)
    if is_hub_name(name) and not name.startswith("models/"):
        folder = hub_folder(name, _HUB_FILES)
        return folder if (folder / "config.json").exists() else folder / "model.tar.gz"
    raise ValueError(_not_found(name))


def local_model(model: str | PathLike[str]) -> Path | None:
    """
    The folder or the archive of a model on this machine: in the checkout, installed, or a path.
    """
    name = os.fspath(model)
    path, short = Path(name).expanduser(), name.removeprefix("models/")
    if (MODELS / short).is_dir():
        return MODELS / short
    spec = find_spec(_installed()[short]) if short in _installed() else None
    if spec is not None and spec.origin:
        return Path(spec.origin).parent
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
    copied = {name: model / name for name in ("config.json", "meta.json", "README.md")}
    weights = model / "weights.th"
    copied["weights.th"] = weights if weights.exists() else model / "best.th"
    for file in (model / "vocabulary").glob("*.txt"):
        copied[f"vocabulary/{file.name}"] = file
    (target / "vocabulary").mkdir()
    for name, file in copied.items():
        if file.exists():
            shutil.copyfile(_resolved_inside(model, file), target / name)


def _resolved_inside(folder: Path, file: Path) -> Path:
    """The target of a link, which must be in the folder, or in a cache of the hub next to it."""
    path, folder = file.resolve(), folder.resolve()
    allowed = [folder]
    if folder.parent.name == "snapshots":
        allowed.append(folder.parent.with_name("blobs"))
    if not any(path.is_relative_to(parent) for parent in allowed) or not path.is_file():
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
    """The name of a model: that of its folder or archive, or what an installed one is called."""
    path = path.resolve()
    name = path.parent.name if path.name == "model.tar.gz" else path.name.removesuffix(".tar.gz")
    return {package: name for name, package in _installed().items()}.get(name, name)


def _installed() -> dict[str, str]:
    """The packages of models that pip installed, by the names of the models."""
    return {point.name: point.value for point in entry_points(group=MODEL_GROUP)}


def _not_found(name: str) -> str:
    short = name.removeprefix("models/")
    available = {folder.name for folder in MODELS.glob("*/")} | set(_installed())
    names = sorted({*_NAMES, *available})
    listed = ", ".join(f"{each} (installed)" if each in available else each for each in names)
    near = get_close_matches(short, names, n=1)
    if short in _NAMES:
        wheel = f"{wheel_name(short)}-{__version__}-py3-none-any.whl"
        hint = f"pip install {RELEASE}/{wheel}"
        if not RELEASE:
            hint = (
                f"a checkout has it, and `python -m elmo_tasks package {short} dist` there makes dist/{wheel} for pip"
            )
        return f"the trained model '{short}' is not installed: {hint}; the names are {listed}"
    hint = f"did you mean {near[0]}? The names are {listed}" if near else f"the names are {listed}"
    return f"'{name}' is neither a trained model nor a folder or an archive: {hint}"
