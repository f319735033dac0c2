"""An index of the words of a text by their vectors in context, on disk."""

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

__all__ = ["Neighbor", "NeighborIndex"]

# Rows that are brought into float32 at once.
_BLOCK = 65536
_FILES = ("vectors.bin", "sentences.txt", "starts.npy", "lines.npy")


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
    and miss neighbours, before it saves time.

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
        about = self.folder / "index.json"
        if not about.is_file():
            part = self.folder.with_name(f"{self.folder.name}.part")
            state = f"a half-built one, '{part}': the command that builds it resumes" if part.is_dir() else "none"
            raise FileNotFoundError(f"there must be an index in '{folder}', but there is {state}")
        for name in _FILES:
            if not (self.folder / name).is_file():
                raise FileNotFoundError(f"the index '{folder}' must have the file {name}, but does not: build it again")
        try:
            self.about: dict[str, Any] = json.loads(about.read_text(encoding="utf-8"))
            dtype, dim = np.dtype(self.about["dtype"]), int(self.about["dim"])
            if "layer" not in self.about:
                raise ValueError("index.json has no layer")
            # Where each sentence starts, in words and in bytes; and at last the sums. Shape of each: (n_sentences + 1,)
            self._starts = np.load(self.folder / "starts.npy")
            self._lines = np.load(self.folder / "lines.npy")
            if self._starts.shape != self._lines.shape or self._starts.ndim != 1 or not len(self._starts):
                raise ValueError(f"starts.npy and lines.npy have {self._starts.shape} and {self._lines.shape} numbers")
            if (size := (self.folder / "sentences.txt").stat().st_size) != self._lines[-1]:
                raise ValueError(f"sentences.txt has {size:,} bytes and not {self._lines[-1]:,}")
        except (EOFError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the files of the index '{folder}' must be as they were made, but one is damaged ({error!r}): "
                "build it again"
            ) from error
        n_bytes = (self.folder / "vectors.bin").stat().st_size
        if n_bytes != len(self) * dim * dtype.itemsize:
            raise ValueError(
                f"the index '{folder}' must have {len(self):,} vectors of {dim} numbers, but has {n_bytes:,} bytes: "
                "build it again"
            )
        # Copied on write, which never comes, because torch warns of arrays that cannot be written to.
        # Shape: (n_words, dim)
        self._vectors = np.memmap(self.folder / "vectors.bin", dtype, "c", shape=(len(self), dim))

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
        """The words of a sentence, counted from 0."""
        with open(self.folder / "sentences.txt", "rb") as file:
            file.seek(self._lines[number])
            return file.read(int(self._lines[number + 1] - self._lines[number])).decode().split()

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
