"""Files of trained tasks: in the checkout, in a folder or an archive, from a release, on the hub, or at an address."""

import os
from os import PathLike
from pathlib import Path

from elmo_tasks.files.json_files import file_digest
from elmo_tasks.shipped import MODELS
from elmo_tasks.vectors.pretrained import hub_folder, is_hub_name, local_file

__all__ = ["trained_model"]

RELEASE = ""
"""The address of the files of this version's release, which the release workflow writes here."""

_HUB_FILES = ["config.json", "meta.json", "weights.th", "vocabulary/*", "model.tar.gz"]


def trained_model(model: str | PathLike[str]) -> Path:
    """
    The folder or the archive of a trained task, downloaded if necessary: a name in `models/` of the checkout
    (`ner` or `models/ner`; without a checkout, a file of the release), a path, an address, or `org/name` or
    `org/name@revision` on the Hugging Face hub.
    """
    name = os.fspath(model)
    path, short = Path(name).expanduser(), name.removeprefix("models/")
    if (MODELS / short).is_dir():
        return MODELS / short
    if path.exists():
        return path
    if "://" in name:
        return local_file(name)
    release = os.environ.get("ELMO_TASKS_RELEASE") or RELEASE
    hint = "models/ is in a checkout and in the files of a release, whose address is ELMO_TASKS_RELEASE"
    if is_hub_name(name) and name == short:
        folder = hub_folder(name, _HUB_FILES)
        return folder if (folder / "config.json").exists() else folder / "model.tar.gz"
    if release and "/" not in short:
        digests = dict(line.split()[::-1] for line in local_file(f"{release}/SHA256SUMS").read_text().splitlines())
        if (file := f"{short}.tar.gz") in digests:
            archive = local_file(f"{release}/{file}")
            if (found := file_digest(archive)) != digests[file]:
                # It is downloaded again next time.
                archive.unlink()
                raise ValueError(f"expected a file with the SHA-256 {digests[file]}, got {found}: {archive}")
            return archive
        hint = f"the release has {', '.join(sorted(digests))}"
    raise ValueError(f"'{name}' is neither a trained model nor a folder or an archive: {hint}")
