"""Files that are appended to for hours, with a record of what is on the disk."""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from elmo_tasks.files.atomic_files import TEMPORARY, naming_errors
from elmo_tasks.files.sealed_json import read_sealed, write_sealed

__all__ = ["LOCK", "RECORD", "GrowingFiles"]

RECORD, LOCK = "progress.json", "lock"
_SECONDS_BETWEEN_RECORDS = 10.0
_BYTES_AT_ONCE = 2**20


class _State(NamedTuple):
    n_items: int
    sizes: tuple[int, ...]
    # Of hashlib, of the first `sizes` bytes.
    hashes: tuple[Any, ...]


class GrowingFiles:
    """
    Files of an index to which sentences are appended. A record, `progress.json`, says how many sentences are on the
    disk, and the SHA-256 of each file up to there: whatever stops the process or the machine, what comes after is cut
    off when the files are opened again.

    A context manager, inside of which sentences are appended. At its end, after an error too, the record is up to date.

    # Parameters

    folder
        Which has nothing but these files, the record, and a lock.
    names
        Of the files.
    request
        What the files are made for, as JSON has it.

    # Raises

    `FileExistsError`
        If the folder has files, but no record.
    `ValueError`
        If the files were made for another request, or are damaged.
    `OSError`
        If a file cannot be read or written.
    """

    def __init__(self, folder: Path, names: Sequence[str], request: Mapping[str, Any]) -> None:
        self._folder, self._request = folder, dict(request)
        self._paths = [folder / name for name in names]
        self._files: list[BinaryIO] = []
        if (folder / RECORD).is_file():
            self._state = self._recorded()
        else:
            others = [f.name for f in folder.iterdir() if f.name != LOCK and not f.name.startswith(TEMPORARY)]
            if others:
                raise FileExistsError(
                    f"'{folder}' must be an index that was interrupted, but has {others[0]} and no {RECORD}: remove "
                    "the folder, or name another index"
                )
            self._state = _State(0, (0,) * len(names), tuple(hashlib.sha256() for _ in names))
            self._write_record()
            for path in self._paths:
                path.touch()
        self._recorded_at = time.monotonic()

    @property
    def n_items(self) -> int:
        """How many sentences there are."""
        return self._state.n_items

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each file."""
        return {path.name: known.hexdigest() for path, known in zip(self._paths, self._state.hashes, strict=True)}

    def append(self, *contents: bytes) -> None:
        """Appends a sentence: a part for each file, in the order of their names."""
        hashes = tuple(known.copy() for known in self._state.hashes)
        for path, file, known, content in zip(self._paths, self._files, hashes, contents, strict=True):
            with naming_errors(path):
                file.write(content)
            known.update(content)
        sizes = tuple(size + len(content) for size, content in zip(self._state.sizes, contents, strict=True))
        # All at once: after Ctrl-C a sentence is in all files, or in none.
        self._state = _State(self._state.n_items + 1, sizes, hashes)
        if time.monotonic() - self._recorded_at > _SECONDS_BETWEEN_RECORDS:
            self._record()

    def __enter__(self) -> "GrowingFiles":
        for path, size in zip(self._paths, self._state.sizes, strict=True):
            # Not "ab", which would append after what is cut off here.
            file = open(path, "r+b")
            self._files.append(file)
            file.truncate(size)
            file.seek(size)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # The error of the block comes first: on a full disk the record stays as it was.
            with suppress(*() if error is None else (OSError,)):
                self._record()
        finally:
            for file in self._files:
                with suppress(OSError):
                    file.close()

    def _record(self) -> None:
        for path, file in zip(self._paths, self._files, strict=True):
            with naming_errors(path):
                file.flush()
                os.fsync(file.fileno())
        self._write_record()
        self._recorded_at = time.monotonic()

    def _write_record(self) -> None:
        n_items, sizes, _ = self._state
        done = {
            name: {"bytes": size, "sha256": digest}
            for (name, digest), size in zip(self.digests.items(), sizes, strict=True)
        }
        write_sealed(self._folder / RECORD, {"request": self._request, "n_items": n_items, "done": done})

    def _recorded(self) -> _State:
        record = read_sealed(self._folder / RECORD)
        request = record.get("request")
        if request != self._request:
            raise ValueError(
                f"'{self._folder}' is an index that was interrupted, with the settings {json.dumps(request)}, and can "
                f"be resumed only with the same, but now they are {json.dumps(self._request)}: give the same, or "
                "remove the folder"
            )
        sizes = tuple(record["done"][path.name]["bytes"] for path in self._paths)
        digests = [record["done"][path.name]["sha256"] for path in self._paths]
        hashes = tuple(_checked(*each) for each in zip(self._paths, sizes, digests, strict=True))
        return _State(record["n_items"], sizes, hashes)


def _checked(path: Path, size: int, sha256: str) -> Any:
    """The hash of the beginning of a file, which must be as it was recorded."""
    known = hashlib.sha256()
    missing = size
    # A file that was never written to may be missing after a power cut.
    path.touch()
    with open(path, "rb") as file:
        while missing and (block := file.read(min(_BYTES_AT_ONCE, missing))):
            known.update(block)
            missing -= len(block)
    if missing or known.hexdigest() != sha256:
        raise ValueError(
            f"the first {size:,} bytes of '{path}' must be as {RECORD} says, but are not: the file is damaged; remove "
            f"'{path.parent}', and the index is built from the start"
        )
    return known
