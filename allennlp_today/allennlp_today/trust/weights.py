"""The weights of an archive, which may be untrusted: tensors by name, and nothing else."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from allennlp_today.files import reason_of
from allennlp_today.trust.unpacking import compare_checksums

__all__ = ["check_weights"]

_LOCK = threading.Lock()


def check_weights(path: Path) -> None:
    """
    Raises a `FileContentError` unless a file is whole and has only tensors, each by its name. Reads
    no tensors.

    Afterwards, AllenNLP may read the file: it calls `torch.load` without `weights_only`, and an
    environment variable can change the default.
    """
    import torch

    from allennlp_today.config_error import FileContentError

    try:
        compare_checksums(path)
        with _only_torch():
            state = torch.load(path, map_location="meta", weights_only=True)
    except Exception as error:
        if isinstance(error, OSError) and error.filename:
            raise
        content = f"what is damaged or may run code ({reason_of(error)})"
        message = f"expected tensors, got {content}: {path}"
        raise FileContentError(message) from error
    if not isinstance(state, Mapping):
        message = f"expected tensors by their names, got {type(state).__name__}: {path}"
        raise FileContentError(message)
    for name, tensor in state.items():
        if not _is_plain(tensor) or not isinstance(name, str):
            content = f"{name!r:.100} of {type(tensor).__name__}"
            message = f"expected tensors by their names, got {content}: {path}"
            raise FileContentError(message)


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor whose numbers are all there, one after the other."""
    import torch

    types = (torch.Tensor, torch.nn.Parameter)
    return type(value) in types and value.layout is torch.strided and not value.is_nested


@contextmanager
def _only_torch() -> Iterator[None]:
    """
    A block in which `torch.load` builds what torch lists, and nothing that this process has added
    to the list: with NumPy's types, for example, a file could read memory.
    """
    from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

    with _LOCK:
        added = get_safe_globals()
        clear_safe_globals()
        try:
            yield
        finally:
            add_safe_globals(added)
