"""An index of the words of a text by their vectors in context, on disk."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elmo_tasks.analysis.neighbors.exact import nearest_rows
from elmo_tasks.analysis.neighbors.files import (
    ABOUT,
    FORM,
    LINES,
    SENTENCES,
    STARTS,
    Layer,
    checked_layers,
    checked_numbers,
    checked_tags,
    read_starts,
    tag_file,
    vector_files,
)
from elmo_tasks.analysis.neighbors.graph import Graph
from elmo_tasks.analysis.neighbors.text import TAGS
from elmo_tasks.data.lm_text import MAX_WORDS
from elmo_tasks.files.sealed_json import check_listed_file, listed_files, read_sealed
from elmo_tasks.unicode_text import in_nfc

__all__ = ["Neighbor", "NeighborIndex"]


class Neighbor(NamedTuple):
    """A word in its sentence."""

    words: list[str]
    position: int
    # The cosine.
    similarity: float


class NeighborIndex:
    """
    The words of a text with their vectors in one layer of a biLM or in several, as `build_index` makes it. The vectors
    stay on disk, mapped into memory.

    A search is exact unless it asks for the graph of a layer, `Graph`, which misses some neighbours. All files are
    read, and compared with the SHA-256 in `index.json`, when an index is opened for the first time in a process.

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
        # What was opened or found before, for the next search.
        self._graphs: dict[Layer, Graph] = {}
        self._rows: dict[tuple[tuple[str, str], ...], np.ndarray] = {}
        if not (self.folder / ABOUT).is_file():
            part = self.folder.with_name(f"{self.folder.name}.part")
            state = f"a half-built one, '{part}': the command that builds it resumes" if part.is_dir() else "none"
            raise FileNotFoundError(f"there must be an index in '{folder}', but there is {state}")
        try:
            self._open()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"the index '{folder}' must have the file {Path(error.filename).name}, but does not: build it again"
            ) from None
        except ValueError as error:
            raise ValueError(
                f"the files of the index '{folder}' must be as they were made, but one is not: {error}. Build it again"
            ) from error

    def _open(self) -> None:
        self.about: dict[str, Any] = read_sealed(self.folder / ABOUT)
        self._digests = {path.name: digest for path, digest in listed_files(self.folder / ABOUT, self.about).items()}
        dtype, dim = checked_numbers(self.about)
        self.layers = checked_layers(self.about)
        self.tags = checked_tags(self.about, TAGS)
        self._vector_files = vector_files(self.layers)
        self._files = [STARTS, LINES, SENTENCES, *map(tag_file, self.tags), *self._vector_files.values()]
        for name in self._files:
            (self.folder / name).stat()
        if missing := sorted(set(self._files) - set(self._digests)):
            raise ValueError(f"{ABOUT} has no SHA-256 of {missing[0]}")
        for name in (STARTS, LINES):
            check_listed_file(self.folder / name, self._digests[name], self.folder / ABOUT)
        # Where each sentence starts, in words and in bytes; and at last the sums. Shape of each: (n_sentences + 1,)
        self._starts, self._lines = read_starts(self.folder / STARTS), read_starts(self.folder / LINES)
        if len(self._starts) != len(self._lines):
            raise ValueError(f"{STARTS} has {len(self._starts):,} numbers, but {LINES} has {len(self._lines):,}")
        n_words = len(self)
        sizes = dict.fromkeys(self._vector_files.values(), n_words * dim * dtype.itemsize)
        sizes[SENTENCES] = int(self._lines[-1])
        for name in self._files[2:]:
            if name in sizes and (found := (self.folder / name).stat().st_size) != sizes[name]:
                raise ValueError(f"{name} has {found:,} bytes and not {sizes[name]:,}")
            check_listed_file(self.folder / name, self._digests[name], self.folder / ABOUT)
        # Copied on write, which never comes, because torch warns of arrays that cannot be written to.
        # Shape of each: (n_words, dim)
        self._vectors = {
            layer: np.memmap(self.folder / name, dtype, "c", shape=(n_words, dim))
            for layer, name in self._vector_files.items()
        }

    def __len__(self) -> int:
        """How many words there are."""
        return int(self._starts[-1])

    @property
    def dim(self) -> int:
        """Units of a vector."""
        return int(self.about["dim"])

    @property
    def n_sentences(self) -> int:
        """How many sentences there are."""
        return len(self._starts) - 1

    @property
    def n_bytes(self) -> int:
        """The size of all files on disk."""
        return sum((self.folder / name).stat().st_size for name in self._files)

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

    def layer_of(self, layer: Layer | None) -> Layer:
        """
        # Returns

        `Union[Literal["mix", "top"], int]`
            A layer of the index; for `None` the last that it was built with.

        # Raises

        `ValueError`
            If the index has not that layer.
        """
        if layer is not None and layer not in self.layers:
            known = ", ".join(map(str, self.layers))
            raise ValueError(
                f"the layer must be one that '{self.folder}' was built with ({known}), but is {layer}: name one of "
                "them, or build another index"
            )
        return self.layers[-1] if layer is None else layer

    def graph(self, layer: Layer | None = None, *, again: bool = False) -> Graph:
        """
        The graph of a layer, for approximate search: see `build_graph`. It is opened once, and `again` if it has been
        built since.

        # Raises

        `FileNotFoundError`
            If there is none.
        `ValueError`
            If it is damaged, or that of other vectors.
        `ModuleNotFoundError`
            If its library is not installed.
        """
        chosen = self.layer_of(layer)
        if again or chosen not in self._graphs:
            self._graphs[chosen] = Graph(self.folder, self._vector_files[chosen], self._digests, len(self), self.dim)
        return self._graphs[chosen]

    def vector_file(self, layer: Layer | None = None) -> str:
        """The name of the file with the vectors of a layer."""
        return self._vector_files[self.layer_of(layer)]

    def digest_of(self, layer: Layer | None = None) -> str:
        """The SHA-256 of the vectors of a layer."""
        return self._digests[self.vector_file(layer)]

    def vectors(self, layer: Layer | None = None) -> np.ndarray:
        """The vectors of a layer as they are on disk: shape `(n_words, dim)`."""
        return self._vectors[self.layer_of(layer)]

    def in_form(self, value: Any) -> Any:
        """A text, or several, see `in_nfc`, in Unicode's form NFC if the text of the index was put into it."""
        return in_nfc(value) if self.about.get(FORM) == "NFC" else value

    def rows_with(self, where: Mapping[str, str]) -> np.ndarray:
        """
        # Parameters

        where
            Tags that a word must have, all of them, as `{"lemma": "play", "pos": "NOUN"}`; put into NFC if the text of
            the index was.

        # Returns

        `np.ndarray`
            Their numbers in the text, ascending, int64.

        # Raises

        `ValueError`
            If the text has no tags of this kind, or no such words; or tags are not as many as the words.
        """
        where = self.in_form(dict(where))
        key = tuple(sorted(where.items()))
        if key not in self._rows:
            self._rows = {key: self._found_rows(where)}
        return self._rows[key]

    def _found_rows(self, where: Mapping[str, str]) -> np.ndarray:
        chosen = np.ones(len(self), bool)
        for tag, value in where.items():
            if tag not in self.tags:
                known = f"has {' and '.join(self.tags)}" if self.tags else "has none: index CoNLL-U, as NAME.conllu"
                raise ValueError(
                    f"a filter must be by the tags of the text, but {tag!r} is none; '{self.folder}' {known}"
                )
            chosen &= self._equal(tag, value)
        if not chosen.any():
            asked = ", ".join(f"{tag}={value}" for tag, value in where.items())
            raise ValueError(
                f"a filter must leave some words, but no word of '{self.folder}' has {asked}: capitals count"
            )
        return np.flatnonzero(chosen)

    def _equal(self, tag: str, value: str) -> np.ndarray:
        """Which words have a tag: shape `(n_words,)`."""
        path, wanted = self.folder / tag_file(tag), "_".join(value.split()).encode()
        with open(path, "rb") as file:
            found = np.fromiter((each == wanted for line in file for each in line.split()), bool)
        if len(found) != len(self):
            raise ValueError(f"'{path}' must have a tag for each of {len(self):,} words, but has {len(found):,}")
        return found

    def search(
        self,
        vector: np.ndarray,
        k: int = 10,
        *,
        without: list[str] | None = None,
        layer: Layer | None = None,
        where: Mapping[str, str] | None = None,
        approximate: bool = False,
    ) -> list[Neighbor]:
        """`search_many` for one vector of shape `(dim,)`; `without` is the sentence of it, which is no neighbour."""
        many = self.search_many(vector[None], k, without=[without], layer=layer, where=where, approximate=approximate)
        return many[0]

    def search_many(
        self,
        vectors: np.ndarray,
        k: int = 10,
        *,
        without: Sequence[list[str] | None] | None = None,
        layer: Layer | None = None,
        where: Mapping[str, str] | None = None,
        approximate: bool = False,
    ) -> list[list[Neighbor]]:
        """
        # Parameters

        vectors
            Shape `(n_vectors, dim)`.
        k
            How many neighbours of each.
        without
            The sentence of each vector, which is no neighbour of itself.
        layer
            See `layer_of`.
        where
            Tags that a neighbour must have: see `rows_with`. Such a search is always exact.
        approximate
            By the graph of the layer.

        # Returns

        `List[List[Neighbor]]`
            The nearest first; the nearest word of each sentence only, and of sentences that are the same only one.

        # Raises

        `ValueError`
            If the vectors have another length, or `k` is below 1; and see the methods named above.
        `FileNotFoundError`, `ModuleNotFoundError`
            If there is no graph, or no library for it.
        """
        if vectors.shape[1:] != (self.dim,):
            raise ValueError(
                f"the vector must have the shape {(self.dim,)}, as the words of the index, but has {vectors.shape[1:]}"
            )
        if k < 1:
            raise ValueError(f"k must be at least 1, but is {k}")
        # Shape: (n_vectors, dim)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        targets = (vectors / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
        rows = self.rows_with(where) if where else None
        graph = self.graph(layer) if approximate and rows is None else None
        n_all = len(self) if rows is None else len(rows)
        found: dict[int, list[Neighbor]] = {}
        # More than asked for, because some share a sentence.
        n_best, left = 4 * k + 16, list(range(len(targets)))
        while left:
            stored = self.vectors(layer)
            if graph is None:
                best = nearest_rows(stored, targets[left], n_best, rows)
            else:
                best = graph.nearest_rows(stored, targets[left], n_best)
            for number, cosines, words in zip(left, *best, strict=True):
                found[number] = self._distinct(cosines.tolist(), words, k, None if without is None else without[number])
            left = [number for number in left if len(found[number]) < k and n_best < n_all]
            n_best *= 8
        return [found[number] for number in range(len(targets))]

    def _distinct(self, cosines: list[float], rows: np.ndarray, k: int, without: list[str] | None) -> list[Neighbor]:
        # Sentences are compared as texts: the same one may be divided into other words.
        own, seen = "".join(without or ()), {""}
        # Of a longer line `LmText` has made pieces, of half that length at least.
        has_pieces = without is not None and len(without) > MAX_WORDS
        found: list[Neighbor] = []
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        for cosine, row, number in zip(cosines, rows.tolist(), numbers.tolist(), strict=True):
            words = self.sentence(number)
            text = "".join(words)
            is_own = text == own or (has_pieces and len(words) >= MAX_WORDS // 2 and text in own)
            if not is_own and text not in seen:
                seen.add(text)
                found.append(Neighbor(words, row - int(self._starts[number]), cosine))
            if len(found) == k:
                break
        return found
