"""Digests of the files that a config trains on: the same data has the same, wherever it is."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.environment import glove_remedy

__all__ = ["digest", "inputs_of", "with_roots_named"]

# Read at both ends of a file, so that vectors of several gigabytes cost nothing.
_SAMPLE = 1 << 20


def digest(path: Path) -> str:
    """
    # Parameters

    path
        A file, or a folder, with all files in it.

    # Returns

    `str`
        The SHA-256 of its size and its first and last mebibyte, 16 hexadecimal digits; of a folder, of the names and
        digests of its files.

    # Raises

    `FileNotFoundError`
        If it is not there.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        content = "\n".join(f"{file.relative_to(path).as_posix()} {digest(file)}" for file in files).encode()
        return hashlib.sha256(content).hexdigest()[:16]
    if not path.is_file():
        if path.parent.name == "glove":
            raise FileNotFoundError(f"the word vectors {path} must be there, but are not: {glove_remedy(path.parent)}")
        raise FileNotFoundError(
            f"{path} must be there to train on, but is not: name the folder of the data with --data, or choose other "
            "tasks with --tasks"
        )
    size = path.stat().st_size
    hashed = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        hashed.update(file.read(_SAMPLE))
        file.seek(max(size - _SAMPLE, 0))
        hashed.update(file.read(_SAMPLE))
    return hashed.hexdigest()[:16]


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
            if value.startswith(root + "/"):
                return roots[root] + value.removeprefix(root)
    return value


def inputs_of(config: Any, roots: Mapping[str, str]) -> dict[str, str]:
    """
    # Parameters

    config
        A config.
    roots
        As for `with_roots_named`.

    # Returns

    `Dict[str, str]`
        For each file or folder below the roots that the config names, its name and its digest; for a URL, itself.

    # Raises

    `FileNotFoundError`
        If one of them is not there.
    """
    found: dict[str, str] = {}
    stack = [config]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, str):
            name = with_roots_named(value, roots)
            if name != value:
                found[name] = value if "://" in value else digest(Path(value))
    return dict(sorted(found.items()))
