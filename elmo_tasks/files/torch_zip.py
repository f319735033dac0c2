"""Files of `torch.save`: a full disk, their checksums, and the errors of those that are not read."""

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["check_zip", "reason_of", "torch_stream"]


@contextmanager
def torch_stream(path: Path) -> Iterator[BinaryIO]:
    """
    A file for `torch.save` to write to. Given a path, torch says of a full disk that a position was not expected.

    # Raises

    `OSError`
        If the file cannot be written, with the system's reason.
    """
    try:
        with open(path, "wb") as stream:
            yield stream
    except RuntimeError as error:
        # Torch raises its own error while it handles that of the file.
        reason = error.__context__
        while reason is not None and not (isinstance(reason, OSError) and reason.errno):
            reason = reason.__context__
        if not isinstance(reason, OSError):
            raise
        raise OSError(reason.errno, reason.strerror) from error


def check_zip(path: str | os.PathLike[str]) -> None:
    """
    Compares the checksums in a file of `torch.save`, which torch itself does not. A file in torch's format of before
    2020, which has none, passes.

    # Raises

    `ValueError`
        If the file is damaged, or unpacks to more than its size, which torch would allocate.
    `OSError`
        If it cannot be read.
    """
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            is_compressed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
            if is_compressed or sum(member.file_size for member in members) > os.path.getsize(path):
                raise ValueError("it is compressed or overlaps itself, as torch writes no file")
            if (bad := file.testzip()) is not None:
                raise ValueError(f"the checksum of {bad!r} in it does not agree")
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"it is damaged: {error}") from error


def reason_of(error: Exception) -> str:
    """What an error of torch says is wrong, without its advice to load the file with the code in it."""
    text = " ".join(str(error).split()).partition("In PyTorch 2.6")
    blocked = re.search(r"Unsupported (global|class|operand)[^.]*\.?[^ ]*", text[2])
    return f"{text[0]}{blocked[0] if blocked else ''}".strip()[:300] or "it ends too early"
