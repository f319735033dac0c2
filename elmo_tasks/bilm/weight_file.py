"""
Files of named arrays: HDF5, the public format of ELMo's weights, and safetensors.

`weights.py` says which array is which parameter. Both formats are read as data from a stranger: nothing outside the
file is opened, nothing is allocated beyond what the file stores, and damage is an error.
"""

import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.hdf5_files import new_hdf5, storage_problem

__all__ = ["StoredArrays", "open_weights", "write_arrays"]

_SAFETENSORS = ".safetensors"
_MAX_HEADER_BYTES = 2**24


class StoredArrays(Protocol):
    """The arrays of a file that is open."""

    def names(self) -> set[str]:
        """The names of all arrays."""
        ...

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of an array, without reading it."""
        ...

    def note(self, name: str) -> str | None:
        """A text about the file that was written with it, or `None`."""
        ...

    def read(self, key: str) -> np.ndarray:
        """
        The numbers of an array, float32.

        # Raises

        `ValueError`
            If they are not float16 or float32, not in the file, or not finite.
        """
        ...

    def read_bytes(self, key: str) -> np.ndarray:
        """
        An array of bytes, uint8, of one dimension.

        # Raises

        `ValueError`
            If it holds something else, or is not in the file.
        """
        ...


@contextmanager
def open_weights(path: str | PathLike[str]) -> Iterator[StoredArrays]:
    """
    Opens a weight file: safetensors if its name ends so, and HDF5 otherwise.

    # Raises

    `ValueError`
        If the file is of another kind or truncated. `OSError` if it cannot be opened at all.
    """
    with open(path, "rb"):
        pass  # A missing file is an OSError of its own, with the system's words; those of the libraries are opaque.
    is_safetensors = os.fspath(path).endswith(_SAFETENSORS)
    try:
        if is_safetensors:
            _check_header(path)
            with safe_open(path, framework="numpy") as file:
                yield _Safetensors(path, file)
        else:
            with h5py.File(path, "r") as file:
                yield _Hdf5(path, file)
    except (KeyError, OSError, RuntimeError, SafetensorError) as error:  # The libraries' words for a damaged file.
        kind = "safetensors" if is_safetensors else "HDF5"
        raise ValueError(
            f"{path}: a weight file must be {kind}, but this one is of another kind or truncated ({error}): "
            "download or write it again"
        ) from None


def write_arrays(
    path: str | PathLike[str], arrays: Mapping[str, np.ndarray], notes: Mapping[str, str] | None = None
) -> None:
    """
    Writes arrays, whole or not at all: as safetensors if the name of the file ends so, and otherwise as gzip'd HDF5
    with checksums.

    # Parameters

    path
        The file.
    arrays
        By name.
    notes
        Texts about the file, by name: attributes in HDF5, metadata in safetensors.

    # Raises

    `OSError`
        If the file cannot be written.
    """
    with atomic_file(Path(path)) as temporary:
        if os.fspath(path).endswith(_SAFETENSORS):
            contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
            try:
                save_file(contiguous, temporary, metadata=dict(notes) if notes else None)
            except SafetensorError as error:  # Among others a full disk.
                raise OSError(f"{path} cannot be written: {error}") from error
            return
        # HDF5 1.10 has checksums of what stands between the arrays, too.
        with new_hdf5(temporary, libver=("v110", "v110")) as (file, check_disk):
            file.attrs.update(notes or {})
            for key, array in arrays.items():
                # With a checksum: h5py refuses what was damaged since.
                file.create_dataset(key, data=array, compression="gzip", fletcher32=True)
                check_disk()


class _Hdf5:
    def __init__(self, path: str | PathLike[str], file: h5py.File) -> None:
        self._path, self._file = path, file

    def names(self) -> set[str]:
        keys: set[str] = set()
        # Neither soft nor external links are visited, so that no key leads out of the file.
        self._file.visititems(lambda key, node: keys.add(key) if isinstance(node, h5py.Dataset) else None)
        return keys

    def shape(self, key: str) -> tuple[int, ...]:
        return tuple(self._file[key].shape or ())

    def note(self, name: str) -> str | None:
        text = self._file.attrs.get(name)
        return text if isinstance(text, str) else None

    def read(self, key: str) -> np.ndarray:
        dataset = self._file[key]
        if reason := _unreadable(dataset, ("f2", "f4")):
            raise ValueError(f"{self._path}: '{key}' must be an array of float16 or float32 in the file, but {reason}")
        return _finite(self._path, key, np.asarray(dataset[...], dtype=np.float32))

    def read_bytes(self, key: str) -> np.ndarray:
        dataset = self._file[key]
        if reason := _unreadable(dataset, ("u1",)):
            raise ValueError(f"{self._path}: '{key}' must be an array of bytes in the file, but {reason}")
        return np.asarray(dataset[...]).reshape(-1)


def _unreadable(dataset: h5py.Dataset, kinds: tuple[str, ...]) -> str | None:
    """Why an array is not read: HDF5 can keep it in other files, leave it unwritten, or declare any size."""
    if (problem := storage_problem(dataset)) is not None:
        return problem
    if f"{dataset.dtype.kind}{dataset.dtype.itemsize}" not in kinds:
        return f"holds {dataset.dtype}"
    is_written = dataset.id.get_storage_size() > 0 and (
        dataset.chunks is None or dataset.id.get_num_chunks() == _n_chunks(dataset)
    )
    if dataset.size and not is_written:
        return "was never written, or only in part"
    return None


def _n_chunks(dataset: h5py.Dataset) -> int:
    n_chunks = 1
    for size, chunk in zip(dataset.shape, dataset.chunks, strict=True):
        n_chunks *= -(-size // chunk)
    return n_chunks


class _Safetensors:
    def __init__(self, path: str | PathLike[str], file: Any) -> None:
        self._path, self._file = path, file

    def names(self) -> set[str]:
        return set(self._file.keys())

    def shape(self, key: str) -> tuple[int, ...]:
        return tuple(self._file.get_slice(key).get_shape())

    def note(self, name: str) -> str | None:
        return (self._file.metadata() or {}).get(name)

    def read(self, key: str) -> np.ndarray:
        dtype = self._file.get_slice(key).get_dtype()
        if dtype not in ("F16", "F32"):
            raise ValueError(
                f"{self._path}: '{key}' must be an array of float16 or float32 in the file, but holds {dtype}"
            )
        return _finite(self._path, key, self._file.get_tensor(key).astype(np.float32))

    def read_bytes(self, key: str) -> np.ndarray:
        dtype = self._file.get_slice(key).get_dtype()
        if dtype != "U8":
            raise ValueError(f"{self._path}: '{key}' must be an array of bytes in the file, but holds {dtype}")
        array: np.ndarray = self._file.get_tensor(key).reshape(-1)
        return array


def _check_header(path: str | PathLike[str]) -> None:
    """safetensors reads its header of JSON whole, and lets a name stand in it twice."""
    with open(path, "rb") as file:
        prefix = file.read(8)
        size = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else _MAX_HEADER_BYTES + 1
        if size > _MAX_HEADER_BYTES:
            raise OSError("its header is truncated or too long")
        try:
            json.loads(file.read(size), object_pairs_hook=_without_doubles)
        except (ValueError, RecursionError) as error:
            raise OSError(f"its header is damaged: {error}") from None


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _finite(path: str | PathLike[str], key: str, array: np.ndarray) -> np.ndarray:
    if not np.isfinite(array).all():
        raise ValueError(f"{path}: '{key}' must hold finite numbers, but holds NaN or infinity")
    return array
