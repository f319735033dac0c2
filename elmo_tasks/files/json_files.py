"""JSON files, and digests of texts and of files."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.text_lines import whole_text

__all__ = ["file_digest", "read_json", "text_digest", "write_json"]


def read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file, which may be compressed as in `whole_text`; a `ValueError` names the file."""
    text = whole_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON: {os.fspath(path)}: {error}") from None


def write_json(path: Path, value: Any) -> None:
    """Writes a value as indented JSON, atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def text_digest(text: str) -> str:
    """The SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
