"""
Public data for the paper's tasks: where its owners publish it, and where it goes in
`ELMO_TASKS_DATA`.
"""

import lzma
import shutil
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from allennlp.common.file_utils import cached_path

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.json_files import file_digest

__all__ = [
    "CORPORA",
    "EXPLAINED",
    "OPEN_DATA",
    "PublicCorpus",
    "PublicFile",
    "fetch",
    "fetch_open",
]

OPEN_DATA = Path(__file__).resolve().parents[2] / "data" / "open"
"""The data of the plan `open` in a checkout, compressed."""


@dataclass(frozen=True)
class PublicFile:
    """
    A file to download. `path` is its path in the data folder; for a zip archive, `path` maps the
    members that are kept to their paths. `sha256` is the digest of an earlier download.
    """

    url: str
    path: str | Mapping[str, str]
    sha256: str | None = None


@dataclass(frozen=True)
class PublicCorpus:
    """A corpus; the note is its licence, or how it differs from the paper's data."""

    title: str
    note: str
    files: tuple[PublicFile, ...]


_TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
EXPLAINED = _TABLE.pop("explained")
"""How to get the data that is licensed or has to be assembled."""
CORPORA = {
    name: PublicCorpus(
        title=corpus["title"],
        note=corpus["note"],
        files=tuple(PublicFile(**file) for file in corpus["files"]),
    )
    for name, corpus in _TABLE.items()
}


def fetch(corpus: PublicCorpus, root: Path) -> list[Path]:
    """
    Downloads the missing files of a corpus to the data folder and returns the paths of all its
    files.
    """
    corpus_paths: list[Path] = []
    for file in corpus.files:
        if isinstance(file.path, str):
            # An empty member name means the whole file.
            paths = {"": root / file.path}
        else:
            paths = {member: root / path for member, path in file.path.items()}
        corpus_paths += paths.values()
        if not all(path.exists() for path in paths.values()):
            _download(file, paths, root / ".downloads" / PurePosixPath(file.url).name)
    return corpus_paths


def _download(file: PublicFile, paths: Mapping[str, Path], downloads: Path) -> None:
    """Writes the members of a file to their paths. `downloads` is a folder for the file itself."""
    download = Path(cached_path(file.url, cache_dir=downloads))
    digest = file_digest(download)
    with open(download, "rb") as content:
        # A network may answer with its login page.
        is_page = content.read(1) == b"<"
    if is_page or digest != (file.sha256 or digest):
        shutil.rmtree(downloads)
        expected = file.sha256 or "of the data"
        got = f"{digest} (a web page)" if is_page else digest
        raise ValueError(f"expected the SHA-256 {expected}, got {got}: {file.url}")
    for member, path in paths.items():
        source: Path | zipfile.Path = download
        if member:
            source = zipfile.Path(download, member)
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            source.open("rb") as content,
            atomic_file(path) as temporary,
            open(temporary, "wb") as target,
        ):
            shutil.copyfileobj(content, target)
    shutil.rmtree(downloads)


def fetch_open(root: Path, source: str = str(OPEN_DATA)) -> list[Path]:
    """
    Fetches the data of the plan `open` and returns the paths of all files.

    `source` is the folder `data/open` of a checkout, or its URL. SST-5 is downloaded from its
    owners. `SHA256SUMS` has the digests of all files. A different digest raises a `ValueError`; the
    file is kept.
    """
    lines = Path(cached_path(f"{source}/SHA256SUMS")).read_text("utf-8").splitlines()
    digests = {}
    for line in lines:
        digest, relative_path = line.split()
        digests[root / relative_path] = digest
    _compare(digests)
    for path in digests:
        relative = path.relative_to(root)
        if relative.parts[0] == "sst" or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            if path.suffix == ".gz":
                shutil.copyfile(cached_path(f"{source}/{relative}"), temporary)
            else:
                _unpack(cached_path(f"{source}/{relative}.xz"), temporary)
    fetch(CORPORA["sst"], root)
    _compare(digests)
    return list(digests)


def _unpack(compressed: str | PathLike[str], path: Path) -> None:
    with lzma.open(compressed) as content, open(path, "wb") as target:
        shutil.copyfileobj(content, target)


def _compare(digests: Mapping[Path, str]) -> None:
    for path, expected in digests.items():
        if not path.exists():
            continue
        digest = file_digest(path)
        if digest != expected:
            raise ValueError(f"expected a file with the SHA-256 {expected}, got {digest}: {path}")
