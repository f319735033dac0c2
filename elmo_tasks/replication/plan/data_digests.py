"""Digests of the files that a config trains on: the same data has the same, wherever it is."""

import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.bilm.model_files import all_weight_files
from elmo_tasks.environment import glove_remedy, inputs_of_config
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.folders import files_below
from elmo_tasks.files.sealed_json import json_sha256, read_sealed, write_sealed

__all__ = ["RECORD", "digest", "inputs_of", "with_roots_named"]

logger = logging.getLogger(__name__)

RECORD = "data_digests.json"
"""The name of the record, in the folder of all runs."""

# Smaller files take less than a tenth of a second each time.
_LARGE = 2**24
# A file that was changed just before it was read may be changed again within the resolution of its time.
_SECONDS_TO_SETTLE = 2


def digest(path: Path, record: Path) -> str:
    """
    # Parameters

    path
        A file, or a folder, with all files in it. That of the weights of ELMoForManyLangs stands for those next to it
        too.
    record
        The file that remembers the digests of large files, so that those that have not changed since (by size, times
        and inode) are not read again. It is not where the data is, which may be read-only.

    # Returns

    `str`
        The SHA-256 of all of it, 16 hexadecimal digits; of a folder, of the names and digests of its files.

    # Raises

    `FileNotFoundError`
        If it is not there.
    """
    if path.is_dir():
        files = sorted(files_below(path))
        return json_sha256({file.relative_to(path).as_posix(): digest(file, record) for file in files})[:16]
    if not path.is_file():
        if path.parent.name == "glove":
            raise FileNotFoundError(f"the word vectors {path} must be there, but are not: {glove_remedy(path.parent)}")
        raise FileNotFoundError(
            f"{path} must be there to train on, but is not: name the folder of the data with --data, or choose other "
            "tasks with --tasks"
        )
    files = all_weight_files(path)
    if len(files) > 1:
        return json_sha256({file.name: _sha256(file, record) for file in files})[:16]
    return _sha256(path, record)[:16]


def _sha256(path: Path, record: Path) -> str:
    return _remembered(path, record) if path.stat().st_size >= _LARGE else sha256_of(path)


def _remembered(path: Path, record: Path) -> str:
    state = path.stat()
    # Copying onto a file with `cp --preserve` changes none of them but the last.
    stamp = [state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns]
    name = str(path.resolve())
    found = _known(record).get(name)
    if isinstance(found, dict) and found.get("stamp") == stamp and isinstance(found.get("sha256"), str):
        return str(found["sha256"])
    sha256 = sha256_of(path)
    if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > _SECONDS_TO_SETTLE * 10**9:
        try:
            record.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(record, {**_known(record), name: {"stamp": stamp, "sha256": sha256}})
        except OSError as error:
            logger.warning("the digest of %s will be computed again, since it cannot be kept: %s", path, error)
    return sha256


def _known(record: Path) -> dict[str, Any]:
    try:
        return read_sealed(record)
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        logger.warning("digests of data are computed again: %s", error)
        return {}


def with_roots_named(value: Any, roots: Mapping[str, str]) -> Any:
    """
    # Parameters

    value
        A config.
    roots
        Folders (or URLs) and their names.

    # Returns

    `Any`
        The config with the names in place of the folders, so that it is the same wherever these are.
    """
    if isinstance(value, dict):
        return {key: with_roots_named(item, roots) for key, item in value.items()}
    if isinstance(value, list):
        return [with_roots_named(item, roots) for item in value]
    if isinstance(value, str):
        # The longest first: one of them may lie in another.
        for root in sorted(roots, key=len, reverse=True):
            if value == root or value.startswith(root + "/"):
                return roots[root] + value.removeprefix(root)
    return value


def inputs_of(config: Any, roots: Mapping[str, str], record: Path, *, without: Collection[str] = ()) -> dict[str, str]:
    """
    # Parameters

    config
        A config.
    roots
        As for `with_roots_named`.
    record
        As for `digest`.
    without
        Names of roots whose files are not read.

    # Returns

    `Dict[str, str]`
        For each file or folder that the config names, its digest: by its name where it is below the roots, or by its
        path where it is data or weights from elsewhere; for a URL, itself.

    # Raises

    `FileNotFoundError`
        If one of those below the roots is not there.
    """
    # From elsewhere are those that an override or an argument names.
    elsewhere = {path for _, path in inputs_of_config(config)}
    found: dict[str, str] = {}
    for value in _strings(config):
        name = with_roots_named(value, roots)
        if name != value and name.partition("/")[0] not in without:
            found[name] = value if "://" in value else digest(Path(value), record)
        elif name == value and value in elsewhere and os.path.exists(value):
            found[value] = digest(Path(value), record)
    return dict(sorted(found.items()))


def _strings(config: Any) -> Iterator[str]:
    if isinstance(config, str):
        yield config
    elif isinstance(config, dict | list):
        for value in config.values() if isinstance(config, dict) else config:
            yield from _strings(value)
