"""Files of trained tasks: in the checkout, in a folder or archive, on the hub, or at an address."""

import os
import re
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from elmo_tasks.shipped import MODELS
from elmo_tasks.vectors.pretrained import hub_folder, is_hub_name, local_file
from elmo_tasks.version import RELEASE

__all__ = ["licence_of", "local_model", "name_of", "trained_model"]

_HUB_FILES = ["config.json", "meta.json", "weights.th", "vocabulary/*", "model.tar.gz"]
_NAMES = ("coref", "ner", "pos", "snli", "squad", "srl", "sst")


def trained_model(model: str | PathLike[str]) -> Path:
    """
    The folder or the archive of a trained task, downloaded if necessary: a name in `models/` of the
    checkout (`ner` or `models/ner`), a path, an address, or `org/name` or `org/name@revision` on
    the Hugging Face hub.
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
    """The folder or the archive of a model on this machine: in the checkout, or a path."""
    name = os.fspath(model)
    path, short = Path(name).expanduser(), name.removeprefix("models/")
    if (MODELS / short).is_dir():
        return MODELS / short
    return path if path.exists() else None


def licence_of(folder: Path) -> str:
    """The licence of a model, from its card; empty if it is unknown."""
    card = folder / "README.md"
    found = re.search(r"^license: *(\S+)", card.read_text("utf-8") if card.is_file() else "", re.MULTILINE)
    return found[1] if found else ""


def name_of(path: Path) -> str:
    """The name of a model: that of its folder or archive."""
    path = path.resolve()
    return path.parent.name if path.name == "model.tar.gz" else path.name.removesuffix(".tar.gz")


def _not_found(name: str) -> str:
    short = name.removeprefix("models/")
    names = sorted({*_NAMES, *(folder.name for folder in MODELS.glob("*/"))})
    if short in _NAMES:
        hint = f"a checkout has it in models/{short}: copy this folder, and give its path"
        if RELEASE:
            hint = f"download {RELEASE}/{short}.tar.gz, and give the path of this file"
        return f"the trained model '{short}' is not part of the installed package: {hint}"
    near = get_close_matches(short, names, n=1)
    hint = f"the names are {', '.join(names)}"
    if near:
        hint = f"did you mean {near[0]}? The names are {', '.join(names)}"
    return f"'{name}' is neither a trained model nor a folder or an archive: {hint}"
