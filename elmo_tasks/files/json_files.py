"""JSON files, and digests of texts and of files."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.lines import numbered_lines

__all__ = [
    "file_digest",
    "first_json_line",
    "json_lines",
    "read_json",
    "text_digest",
    "write_json",
]


def read_json(path: str | os.PathLike[str], decode: Callable[[str], Any] = json.loads) -> Any:
    """
    The content of a JSON file, which may be compressed as in `numbered_lines`; a `ValueError` names
    the file.
    """
    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        return decode(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON: {os.fspath(path)}: {error}") from None


def first_json_line(path: str | os.PathLike[str]) -> Any:
    """The value of the first line that is not blank. `None`: it is not JSON, or does not exist."""
    for _, line in numbered_lines(path):
        if line.strip():
            try:
                return json.loads(line)
            except (ValueError, RecursionError):
                return None
    return None


def json_lines(
    path: str | os.PathLike[str], decode: Callable[[str], Any] = json.loads
) -> Iterator[tuple[int, dict[str, Any]]]:
    """
    The objects in a file with one JSON object per line, each with its line number. Blank lines are
    ignored.
    """
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            content = decode(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            expected = "a JSON object in each line"
            raise ValueError(f"expected {expected}, got {line[:60]!r}: {path}, line {number}")
        yield number, content


def write_json(path: Path, value: Any) -> None:
    """Writes a value as indented JSON, atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def text_digest(text: str) -> str:
    """The SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """
    The SHA-256 of a file in hexadecimal digits. A pipe is an error: its content could not be read
    again.
    """
    if path.is_fifo():
        raise ValueError(f"expected a file, which is read several times, got a pipe: {path}")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
