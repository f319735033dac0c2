"""JSON files with a checksum of their own content, which may list checksums of files next to them."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of

__all__ = [
    "check_listed_file",
    "is_sealed",
    "json_sha256",
    "listed_files",
    "read_json",
    "read_sealed",
    "sealed_text",
    "write_sealed",
]

# The keys of the checksum, and of the files: an object from paths, relative to the folder of the file, to checksums.
_SEAL = "sha256_of_the_rest"
_FILES = "files"


def json_sha256(value: Any) -> str:
    """The SHA-256 of a value of JSON, as hexadecimal digits; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def read_json(path: Path) -> Any:
    """
    The content of a JSON file.

    # Raises

    `ValueError`
        If it is not JSON in UTF-8, or nested too deep; with the name of the file.
    `OSError`
        If it cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError(f"{path} must be JSON, but is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{path} must be JSON, but is not: {error}") from None


def sealed_text(content: Mapping[str, Any]) -> str:
    """An object with its checksum, as a file has it."""
    return json.dumps({**content, _SEAL: json_sha256(content)}, indent=1) + "\n"


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Writes an object with its checksum, whole or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(sealed_text(content), encoding="utf-8")


def is_sealed(content: Any) -> bool:
    """Whether a value of JSON is an object with a checksum."""
    return isinstance(content, dict) and _SEAL in content


def read_sealed(path: Path) -> dict[str, Any]:
    """
    The object of a file that `write_sealed` has written, without its checksum.

    # Raises

    `ValueError`
        If the file is damaged, or has no checksum; with its name.
    `OSError`
        If it cannot be read.
    """
    content = read_json(path)
    if not is_sealed(content):
        raise ValueError(
            f"{path} must be a JSON object with its checksum, '{_SEAL}', but has none: it is damaged, or was not "
            "written by this version of elmo_tasks"
        )
    rest = {key: value for key, value in content.items() if key != _SEAL}
    if (found := json_sha256(rest)) != content[_SEAL]:
        raise ValueError(
            f"{path} is damaged or was changed: the SHA-256 of its content is {found[:12]}..., but it says "
            f"{content[_SEAL]!s:.12}..."
        )
    return rest


def listed_files(path: Path, content: Mapping[str, Any]) -> dict[Path, str]:
    """
    # Parameters

    path
        A file of JSON.
    content
        What is in it.

    # Returns

    `Dict[Path, str]`
        The files that it lists, and their SHA-256; none if it lists no files.

    # Raises

    `ValueError`
        If the list has another form, or names files outside the folder of the file.
    """
    files = content.get(_FILES, {})
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        raise ValueError(f"{path} must list files with their SHA-256, but has {files!r:.100}")
    for name in files:
        if not name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ValueError(f"{path} must list files of its own folder only, but lists {name!r:.100}")
    return {path.parent / name: digest for name, digest in files.items()}


def check_listed_file(file: Path, sha256: str, path: Path) -> None:
    """
    # Parameters

    file, sha256
        Of `listed_files`.
    path
        The file that lists it.

    # Raises

    `FileNotFoundError`
        If there is no such file.
    `ValueError`
        If it is not the file that is listed.
    `OSError`
        If it cannot be read.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file} must be there, since {path.name} lists it, but is not")
    found = sha256_of(file)
    if found != sha256:
        raise ValueError(
            f"{file} is damaged or was replaced: its SHA-256 is {found[:12]}..., but {path.name} says {sha256:.12}..."
        )
