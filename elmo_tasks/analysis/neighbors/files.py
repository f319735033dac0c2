"""Names and entries of the files of an index of words in context."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

__all__ = [
    "ABOUT",
    "DTYPES",
    "FORM",
    "LINES",
    "SENTENCES",
    "STARTS",
    "Layer",
    "checked_layers",
    "checked_numbers",
    "checked_tags",
    "read_starts",
    "tag_file",
    "vector_files",
]

Layer = Literal["mix", "top"] | int
"""As in `Elmo.embed_iter`."""

ABOUT, SENTENCES, STARTS, LINES = "index.json", "sentences.txt", "starts.npy", "lines.npy"

FORM = "form"
"""The entry of an index that says in which Unicode form its text is."""

DTYPES: dict[str, np.dtype[Any]] = {"float16": np.dtype("<f2"), "float32": np.dtype("<f4"), "int8": np.dtype("<i1")}
"""Of the numbers on disk, by their names."""

DIGEST, PRECISION = "digest", "precision"
"""The entries of an index that say what the biLM was that made its vectors, and in which precision if not float32."""

_TEXTS = ("bilm", "weights", "start_state", "corpus", DIGEST, PRECISION)


def vector_files(layers: Sequence[Layer]) -> dict[Layer, str]:
    """The file of each layer: `vectors.bin`, which all versions read, if there is one."""
    return {layer: "vectors.bin" if len(layers) == 1 else f"vectors-{layer}.bin" for layer in layers}


def tag_file(tag: str) -> str:
    """The file with the tags of a kind, in the lines of the words."""
    return f"{tag}.txt"


def checked_numbers(about: dict[str, Any]) -> tuple[np.dtype[Any], int]:
    """The type and the number of the numbers of a vector, from the entries of an index; another one is an error."""
    dtype, dim = about.get("dtype"), about.get("dim")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{ABOUT} must have the dtype {' or '.join(DTYPES)}, but has {dtype!r:.100}")
    if type(dim) is not int or dim < 1:
        raise ValueError(f"{ABOUT} must have a dim of at least 1, but has {dim!r:.100}")
    for name in _TEXTS:
        if not isinstance(about.get(name, ""), str):
            raise ValueError(f"{ABOUT} must have text as '{name}', but has {about[name]!r:.100}")
    return DTYPES[dtype], dim


def checked_layers(about: dict[str, Any]) -> list[Layer]:
    """The layers of an index, from its entries: one as `layer`, or several as `layers`; others are an error."""
    layers = about["layers"] if "layers" in about else [about.get("layer")]
    if not isinstance(layers, list) or not layers or len(set(map(str, layers))) < len(layers):
        raise ValueError(f"{ABOUT} must have layers, each once, but has {layers!r:.100}")
    for layer in layers:
        if layer not in ("mix", "top") and not (type(layer) is int and layer >= 0):
            raise ValueError(f"{ABOUT} must have a layer, a number, 'top' or 'mix', but has {layer!r:.100}")
    return layers


def checked_tags(about: dict[str, Any], known: Sequence[str]) -> list[str]:
    """The kinds of tags of an index, from its entries; others are an error."""
    tags = about.get("tags", [])
    if not isinstance(tags, list) or any(tag not in known for tag in tags):
        raise ValueError(f"{ABOUT} must have no tags but {', '.join(known)}, but has {tags!r:.100}")
    return tags


def read_starts(path: Path) -> np.ndarray:
    """Where sentences start: mapped into memory, because the size that a file claims to have may be any."""
    try:
        starts = np.lib.format.open_memmap(path, mode="r")
    except (EOFError, OverflowError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path.name} must be an array of NumPy's, but is not: {error!r}") from None
    except ValueError as error:
        raise ValueError(f"{path.name} must be an array of NumPy's, but is not: {error}") from None
    if starts.dtype != np.dtype("<i8") or starts.ndim != 1 or len(starts) < 2:
        raise ValueError(f"{path.name} must have one row of int64, but has {starts.dtype} of the shape {starts.shape}")
    # Not by differences, which can overflow.
    if starts[0] != 0 or not (starts[1:] >= starts[:-1]).all():
        raise ValueError(f"{path.name} must begin with 0 and never decrease, but does not")
    return starts
