"""An index of the words of a text by their vectors in context, on disk."""

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from elmo_tasks.files.sealed_json import check_listed_file, listed_files, read_sealed

__all__ = ["ABOUT", "DTYPES", "LINES", "SENTENCES", "STARTS", "VECTORS", "Neighbor", "NeighborIndex"]

ABOUT, VECTORS, SENTENCES, STARTS, LINES = "index.json", "vectors.bin", "sentences.txt", "starts.npy", "lines.npy"
DTYPES: dict[str, np.dtype[Any]] = {"float16": np.dtype("<f2"), "float32": np.dtype("<f4")}
"""Of the numbers on disk, by their names."""

# Rows that are brought into float32 at once.
_BLOCK = 65536
_FILES = (STARTS, LINES, SENTENCES, VECTORS)


class Neighbor(NamedTuple):
    """A word in its sentence."""

    words: list[str]
    position: int
    # The cosine.
    similarity: float


class NeighborIndex:
    """
    The words of a text with their vectors in one layer of a biLM, as `build_index` makes it. The vectors stay on disk,
    mapped into memory, and have the length 1, so that a product is a cosine.

    The search is exact: it reads all vectors, one block after another. A million words of the small biLM are 512 MB in
    float16 and take about a second; an approximate index (faiss, hnswlib) would need more memory than that to be built,
    and miss neighbours, before it saves time. So all files are read, and compared with the SHA-256 in `index.json`,
    when an index is opened for the first time in a process.

    # Parameters

    folder
        The index.

    # Raises

    `FileNotFoundError`
        If there is no index, or only a half-built one.
    `ValueError`
        If its files are damaged, or do not fit each other.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        if not (self.folder / ABOUT).is_file():
            part = self.folder.with_name(f"{self.folder.name}.part")
            state = f"a half-built one, '{part}': the command that builds it resumes" if part.is_dir() else "none"
            raise FileNotFoundError(f"there must be an index in '{folder}', but there is {state}")
        for name in _FILES:
            if not (self.folder / name).is_file():
                raise FileNotFoundError(f"the index '{folder}' must have the file {name}, but does not: build it again")
        try:
            self._open()
        except ValueError as error:
            raise ValueError(
                f"the files of the index '{folder}' must be as they were made, but one is not: {error}. Build it again"
            ) from error

    def _open(self) -> None:
        self.about: dict[str, Any] = read_sealed(self.folder / ABOUT)
        digests = {path.name: digest for path, digest in listed_files(self.folder / ABOUT, self.about).items()}
        if missing := sorted(set(_FILES) - set(digests)):
            raise ValueError(f"{ABOUT} has no SHA-256 of {missing[0]}")
        dtype, dim = _numbers(self.about)
        for name in (STARTS, LINES):
            check_listed_file(self.folder / name, digests[name], self.folder / ABOUT)
        # Where each sentence starts, in words and in bytes; and at last the sums. Shape of each: (n_sentences + 1,)
        self._starts, self._lines = _starts(self.folder / STARTS), _starts(self.folder / LINES)
        if len(self._starts) != len(self._lines):
            raise ValueError(f"{STARTS} has {len(self._starts):,} numbers, but {LINES} has {len(self._lines):,}")
        n_words = len(self)
        for name, size in ((SENTENCES, int(self._lines[-1])), (VECTORS, n_words * dim * dtype.itemsize)):
            if (found := (self.folder / name).stat().st_size) != size:
                raise ValueError(f"{name} has {found:,} bytes and not {size:,}")
            check_listed_file(self.folder / name, digests[name], self.folder / ABOUT)
        # Copied on write, which never comes, because torch warns of arrays that cannot be written to.
        # Shape: (n_words, dim)
        self._vectors = np.memmap(self.folder / VECTORS, dtype, "c", shape=(n_words, dim))

    def __len__(self) -> int:
        """How many words there are."""
        return int(self._starts[-1])

    @property
    def n_sentences(self) -> int:
        """How many sentences there are."""
        return len(self._starts) - 1

    @property
    def n_bytes(self) -> int:
        """The size of all files on disk."""
        return sum((self.folder / name).stat().st_size for name in _FILES)

    def sentence(self, number: int) -> list[str]:
        """
        The words of a sentence, counted from 0.

        # Raises

        `ValueError`
            If it is not UTF-8, or has not as many words as vectors.
        """
        with open(self.folder / SENTENCES, "rb") as file:
            file.seek(self._lines[number])
            line = file.read(int(self._lines[number + 1] - self._lines[number]))
        try:
            words = line.decode().split()
            if len(words) != self._starts[number + 1] - self._starts[number]:
                raise ValueError(f"it has {len(words)} words, and not as many as vectors")
        except ValueError as error:
            raise ValueError(
                f"sentence {number} in '{self.folder / SENTENCES}' must be as it was indexed, but is not ({error}): "
                "build the index again"
            ) from None
        return words

    def search(self, vector: np.ndarray, k: int = 10, *, without: list[str] | None = None) -> list[Neighbor]:
        """
        # Parameters

        vector
            Shape `(dim,)`.
        k
            How many neighbours.
        without
            The sentence of the vector, which is no neighbour of itself.

        # Returns

        `List[Neighbor]`
            The nearest first; the nearest word of each sentence only, and of sentences that are the same only one.

        # Raises

        `ValueError`
            If the vector has another length, or `k` is below 1.
        """
        if vector.shape != self._vectors.shape[1:]:
            raise ValueError(
                f"the vector must have the shape {self._vectors.shape[1:]}, as the words of the index, but has "
                f"{vector.shape}"
            )
        if k < 1:
            raise ValueError(f"k must be at least 1, but is {k}")
        target = torch.from_numpy(vector / max(float(np.linalg.norm(vector)), np.finfo(np.float32).tiny)).float()
        # More than asked for, because some share a sentence.
        n_rows = 4 * k + 16
        while True:
            found = self._distinct(*self._best(target, n_rows), k, without)
            if len(found) == k or n_rows >= len(self):
                return found
            n_rows *= 8

    def _best(self, target: torch.Tensor, n_rows: int) -> tuple[list[float], list[int]]:
        """The highest cosines and their rows."""
        values, rows = torch.empty(0), torch.empty(0, dtype=torch.long)
        for start in range(0, len(self), _BLOCK):
            # Shape: (n_block,)
            products = torch.from_numpy(self._vectors[start : start + _BLOCK]).float() @ target
            values = torch.cat([values, products])
            rows = torch.cat([rows, torch.arange(start, start + len(products))])
            values, order = values.topk(min(n_rows, len(values)))
            rows = rows[order]
        return values.tolist(), rows.tolist()

    def _distinct(self, values: list[float], rows: list[int], k: int, without: list[str] | None) -> list[Neighbor]:
        seen = {tuple(without or ())}
        found: list[Neighbor] = []
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        for value, row, number in zip(values, rows, numbers.tolist(), strict=True):
            words = self.sentence(number)
            if tuple(words) not in seen:
                seen.add(tuple(words))
                found.append(Neighbor(words, row - int(self._starts[number]), value))
            if len(found) == k:
                break
        return found


def _numbers(about: dict[str, Any]) -> tuple[np.dtype[Any], int]:
    """The type and the number of the numbers of a vector."""
    dtype, dim, layer = about.get("dtype"), about.get("dim"), about.get("layer")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{ABOUT} must have the dtype {' or '.join(DTYPES)}, but has {dtype!r:.100}")
    if type(dim) is not int or dim < 1:
        raise ValueError(f"{ABOUT} must have a dim of at least 1, but has {dim!r:.100}")
    if type(layer) is not int and layer not in ("top", "mix"):
        raise ValueError(f"{ABOUT} must have a layer, a number, 'top' or 'mix', but has {layer!r:.100}")
    for name in ("bilm", "weights", "corpus"):
        if not isinstance(about.get(name, ""), str):
            raise ValueError(f"{ABOUT} must have text as '{name}', but has {about[name]!r:.100}")
    return DTYPES[dtype], dim


def _starts(path: Path) -> np.ndarray:
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
