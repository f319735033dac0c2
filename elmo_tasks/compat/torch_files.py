"""Files that `torch.save` has written, read as data from a stranger: without code, and whole."""

import os
import pickle
import re
import zipfile
from typing import Any, BinaryIO

__all__ = ["check_zip", "load_without_code", "reason_of"]


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


def load_without_code(file: str | os.PathLike[str] | BinaryIO, name: object) -> Any:
    """
    Loads tensors, numbers of Python and NumPy, and containers of them, to the CPU. With `ELMO_TASKS_ALLOW_PICKLE=1` it
    loads any object, which runs the code that the file names.

    # Parameters

    file
        A path or an open file.
    name
        The file, as an error names it.

    # Raises

    `ConfigurationError`
        If the file holds other objects, or is damaged.
    """
    import numpy
    import torch
    from allennlp.common.checks import ConfigurationError

    if os.environ.get("ELMO_TASKS_ALLOW_PICKLE") == "1":
        return torch.load(file, map_location="cpu", weights_only=False)
    reconstruct = numpy.empty(0).__reduce__()[0]
    scalar = numpy.float64(0).__reduce__()[0]
    dtypes = {type(numpy.dtype(code)) for code in numpy.typecodes["All"] if code not in "OV"}
    numbers: list[Any] = [numpy.ndarray, numpy.dtype, reconstruct, scalar, *dtypes]
    try:
        if isinstance(file, str | os.PathLike):
            check_zip(file)
        with torch.serialization.safe_globals(numbers):
            return torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, KeyError, RuntimeError, ValueError) as error:
        raise ConfigurationError(
            f"{name} must hold tensors and numbers, and be whole, but does not ({reason_of(error)}). If the file is "
            "your own and a callback of yours keeps other objects in it, set ELMO_TASKS_ALLOW_PICKLE=1, which runs "
            "whatever code the file names"
        ) from error
