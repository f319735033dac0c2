"""From the files of a corpus to the places where configs look for them."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from filelock import FileLock

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import check_file, checksum_path, sha256_of, write_checksum
from elmo_tasks.public_data.corpora import Corpus, PublicFile
from elmo_tasks.public_data.resumable import download_resumably

__all__ = ["fetch"]

_DOWNLOADS = ".downloads"
_BYTES_AT_ONCE = 2**20


def fetch(corpus: Corpus, root: Path) -> list[Path]:
    """
    Downloads what is not there yet, and puts it where configs look for it. A file that is there is compared with the
    checksum that was noted when it came.

    # Parameters

    corpus
        One of `CORPORA`.
    root
        The folder of the data, `ELMO_TASKS_DATA`.

    # Returns

    `List[Path]`
        All files of the corpus.

    # Raises

    `ConnectionError`
        If a file cannot be downloaded; what has come stays in `.downloads`, and the next call resumes it.
    `ValueError`
        If a file is not what its owner publishes, or has changed since it came.
    `FileExistsError`
        If there is a file that this function has not put there.
    `OSError`
        If a file cannot be written.
    """
    return [path for file in corpus.files for path in _fetch(file, root)]


def _fetch(file: PublicFile, root: Path) -> Iterator[Path]:
    downloads = root / _DOWNLOADS
    downloads.mkdir(parents=True, exist_ok=True)
    archive = downloads / Path(urlsplit(file.url).path).name
    # Another process that fetches the same waits, and finds it there.
    with FileLock(f"{archive}.lock"):
        missing = [place for place in file.places if not _is_there(root / place)]
        if missing:
            download_resumably(file.url, archive, n_bytes=file.n_bytes, max_bytes=file.max_bytes, sha256=file.sha256)
            if file.place is None:
                _unpack(archive, {name: root / place for name, place in file.members.items()}, file.max_bytes)
            else:
                with open(archive, "rb") as source:
                    _write(source, root / file.place, file.max_bytes)
            archive.unlink()
    yield from (root / place for place in file.places)


def _is_there(path: Path) -> bool:
    if not path.exists():
        return False
    if not checksum_path(path).exists():
        raise FileExistsError(
            f"{path} must be a file that this command has put there, but has no {checksum_path(path).name}: move it "
            "away, or name another folder with --to"
        )
    return check_file(path)


def _unpack(archive: Path, places: dict[str, Path], max_bytes: int) -> None:
    """Writes some members of a zip archive, and no others: no name in it is used as a path."""
    try:
        with zipfile.ZipFile(archive) as opened:
            if missing := sorted(places.keys() - set(opened.namelist())):
                raise ValueError(f"{archive} must have {missing[0]}, but does not: it is another archive; remove it")
            for name, place in places.items():
                with opened.open(name) as source:
                    _write(source, place, max_bytes)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        digest = sha256_of(archive)[:12]
        archive.unlink()
        raise ValueError(
            f"{archive} (SHA-256 {digest}...) must be a zip archive that can be read, but {error}: it is removed; run "
            "the command again"
        ) from error


def _write(source: IO[bytes], place: Path, max_bytes: int) -> None:
    n_bytes = 0
    place.parent.mkdir(parents=True, exist_ok=True)
    # The lock of the archive is held. The checksum is there before the file, which is fetched again if it is not.
    with atomic_file(place, exclusive=True) as part:
        with open(part, "wb") as target:
            while block := source.read(_BYTES_AT_ONCE):
                n_bytes += len(block)
                if n_bytes > max_bytes:
                    raise ValueError(f"{place} must have at most {max_bytes:,} bytes, but has more")
                target.write(block)
        write_checksum(place, part)
