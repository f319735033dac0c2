"""Files that `torch.save` has written, read as data from a stranger: without code, and whole."""

import os
import pickle
from typing import Any, BinaryIO

from elmo_tasks.files.torch_zip import check_zip, reason_of

__all__ = ["load_without_code"]


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
