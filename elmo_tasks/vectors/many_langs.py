"""Archives of ELMoForManyLangs (Che et al. 2018): where they are, and how one becomes a biLM in the public format."""

import shutil
import zipfile
import zlib
from pathlib import Path
from typing import IO

from filelock import FileLock

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.many_langs import model_files
from elmo_tasks.files.atomic_files import TEMPORARY, atomic_folder
from elmo_tasks.files.checksums import checksum_path
from elmo_tasks.vectors.download import download

__all__ = ["ARCHIVES", "make_from_archive", "unpack"]

# The list in the README of github.com/HIT-SCIR/ELMoForManyLangs, of which the addresses begin with http; the server
# has https too. The codes of languages are ours.
_SERVER = "https://vectors.nlpl.eu/repository/11"
_LANGUAGES = (
    "ar bg ca cs cu da de el en es et eu fa fi fr ga gl grc he hi hr hu id it ja ko la lv nl nb nn pl pt ro ru sk sl "
    "sv tr ug uk ur vi zh"
)
ARCHIVES = {language: f"{_SERVER}/{number}.zip" for number, language in enumerate(_LANGUAGES.split(), start=136)}
"""The addresses of the archives by language; `cu` is Old Church Slavonic, `grc` Ancient Greek, `zh` is traditional."""

# Of the files of a model; the published ones have about 0.4 GB together.
_MAX_BYTES = 2**31
_BYTES_AT_ONCE = 2**20
_ENDINGS = (".dic", ".json", ".pkl")


def make_from_archive(url: str, folder: Path, names: tuple[str, str]) -> None:
    """
    Downloads the archive of a model, and writes its biLM in the public format; whole or not at all.

    # Parameters

    url
        The archive.
    folder
        The folder that there will be.
    names
        Those of the options and of the weights in it.

    # Raises

    `ConnectionError`
        If it cannot be downloaded.
    `ValueError`
        If it is not the archive of a model.
    `OSError`
        If the folder cannot be written.
    """
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # Next to the folder, on the same disk. What a killed process left is overwritten.
    work = folder.parent / f"{TEMPORARY}{folder.name}"
    with FileLock(f"{work}.lock"):
        # Another process may have made it.
        if all((folder / name).is_file() for name in names):
            return
        shutil.rmtree(work, ignore_errors=True)
        try:
            archive = work / "model.zip"
            download(url, archive, max_bytes=_MAX_BYTES, check=_check_archive)
            try:
                unpack(archive, work / "model")
                archive.unlink()
                files = model_files(work / "model")
                if files is None:
                    raise ValueError("it has none of the files of a model of ELMoForManyLangs")
                bilm = Bilm.from_files(*files)
            except (ValueError, FileNotFoundError) as error:
                raise ValueError(f"{url} must be the archive of a model, but is not: {error}") from error
            with atomic_folder(folder, {*names, *(checksum_path(folder / name).name for name in names)}) as made:
                bilm.save(*(made / name for name in names))
        finally:
            shutil.rmtree(work, ignore_errors=True)


def unpack(archive: Path, folder: Path) -> None:
    """
    Unpacks the files of a model, which are at the top of the archive, and no others.

    # Raises

    `ValueError`
        If it is no archive, is damaged or encrypted, has a file twice or unpacks to more than 2 GiB.
    `OSError`
        If a file cannot be written.
    """
    folder.mkdir(parents=True)
    left = _MAX_BYTES
    try:
        with zipfile.ZipFile(archive) as opened:
            for member in opened.infolist():
                name = member.filename
                # No name that leads out of the folder, or into another one, has such a form.
                if not name.endswith(_ENDINGS) or "/" in name or "\\" in name or name.startswith("."):
                    continue
                with opened.open(member) as source, open(folder / name, "xb") as target:
                    left -= _copy(source, target, left)
    except FileExistsError as error:
        raise ValueError(f"{archive} must have each file once, but has {Path(error.filename).name!r} twice") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{archive} must be a zip archive that can be read, but {error}") from error


def _copy(source: IO[bytes], target: IO[bytes], max_bytes: int) -> int:
    n_bytes = 0
    while block := source.read(_BYTES_AT_ONCE):
        n_bytes += len(block)
        if n_bytes > max_bytes:
            raise ValueError(f"the files of a model must have at most {_MAX_BYTES:,} bytes, but have more")
        target.write(block)
    return n_bytes


def _check_archive(path: Path) -> None:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} must be a zip archive, but is not")
