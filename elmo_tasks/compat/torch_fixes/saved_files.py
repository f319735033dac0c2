"""Files that `torch.save` has written, read as data from a stranger: without code, and whole."""

import io
import os
import pickle
from functools import wraps
from typing import Any, BinaryIO

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.files.torch_zip import check_zip, reason_of

__all__ = ["load_tensor_cache", "load_training_state", "load_without_code"]


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


def load_training_state(checkpointer: Module) -> None:
    """
    Symptom: `allennlp train --recover` raises `UnpicklingError: Weights only load failed`.

    Cause: the state of the training may hold NumPy numbers, which `torch.load` refuses by default since torch 2.6. They
    are allowed; other objects are not, since unpickling them can run code, and a folder of runs may be shared. For
    callbacks whose state holds other objects, `ELMO_TASKS_ALLOW_PICKLE=1` unpickles whatever is there.
    """

    def load_checkpoint(self: Any) -> Any:
        latest = self.find_latest_checkpoint()
        if latest is None:
            return None
        model_path, training_state_path = latest
        # On the CPU: `load_state_dict` copies to the GPU, where two copies may not fit.
        return checkpointer.TrainerCheckpoint(
            load_without_code(model_path, model_path), load_without_code(training_state_path, training_state_path)
        )

    original = checkpointer.Checkpointer.load_checkpoint
    checkpointer.Checkpointer.load_checkpoint = wraps(original)(load_checkpoint)


def load_tensor_cache(file_utils: Module) -> None:
    """
    Symptom: reading from a `TensorCache` raises `UnpicklingError: Weights only load failed`, and writing to it
    warns that `TypedStorage is deprecated`.

    Cause: the tensors are written with pickle's highest protocol, which `torch.load` refuses unless it is told
    that the file can be trusted (torch >= 2.6). Tensors are now written with torch's own protocol; a cache that
    AllenNLP itself has written needs `ELMO_TASKS_ALLOW_PICKLE=1`.
    """
    import torch

    def __getitem__(self: Any, key: str) -> "torch.Tensor":
        # The cache in memory holds weak references: hold the tensor before looking it up again.
        tensor = self.cache_cache.get(key)
        if tensor is None:
            with self.lmdb_env.begin(write=False) as transaction:
                buffer = transaction.get(key.encode())
            if buffer is None:
                raise KeyError(key)
            tensor = load_without_code(io.BytesIO(buffer), f"entry {key!r} of the tensor cache {self.lmdb_env.path()}")
            self.cache_cache[key] = tensor
        return tensor

    def __setitem__(self: Any, key: str, tensor: "torch.Tensor") -> None:
        if self.read_only:
            raise ValueError("cannot write to a read-only cache")
        tensor = tensor.cpu()
        if tensor.untyped_storage().nbytes() != tensor.nbytes:
            tensor = tensor.clone()  # `torch.save` writes the whole storage behind a slice.
        buffer = io.BytesIO()
        torch.save(tensor.detach(), buffer)
        with self.lmdb_env.begin(write=True) as transaction:
            transaction.put(key.encode(), buffer.getbuffer())
        self.cache_cache[key] = tensor

    file_utils.TensorCache.__getitem__ = __getitem__
    file_utils.TensorCache.__setitem__ = __setitem__
