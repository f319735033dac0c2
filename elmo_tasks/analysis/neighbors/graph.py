"""The graph of a layer of an index, for approximate search: HNSW (Malkov and Yashunin 2016), by usearch."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elmo_tasks.analysis.neighbors.exact import cosines_of, nearest_rows
from elmo_tasks.analysis.neighbors.files import ABOUT, Layer
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import check_listed_file, listed_files, read_sealed, write_sealed
from elmo_tasks.progress import progress_bar

if TYPE_CHECKING:
    from elmo_tasks.analysis.neighbors.index import NeighborIndex

__all__ = ["Graph", "build_graph"]

# Links of a word, and how many words are looked at when it gets them and when it is searched for.
_LINKS, _LOOKED_AT_BUILD, _LOOKED_AT_SEARCH = 16, 128, 128
# Words that are added at once: Ctrl-C waits for them.
_AT_ONCE = 8192
# Words by which the recall is measured, and how many neighbours of each.
_MEASURED, _NEAREST = 200, 10
# Cosines that differ by less are the same: sentences that are repeated have the same words.
_SAME = 1e-4


class Graph:
    """
    The graph of a layer, which stays on disk, mapped into memory.

    It is a file of the library, which reads it as it is: one that was not made by `build_graph` on a machine that you
    trust can make the process fail.

    # Parameters

    folder
        The index.
    vector_file
        The vectors of the layer, by their name in the folder.
    digests
        The SHA-256 of the files of the index.
    n_words, dim
        Of the index.

    # Raises

    `FileNotFoundError`
        If the layer has no graph.
    `ModuleNotFoundError`
        If usearch is not installed.
    `ValueError`
        If the graph is damaged, or that of other vectors.
    """

    def __init__(self, folder: Path, vector_file: str, digests: Mapping[str, str], n_words: int, dim: int) -> None:
        path, record = _graph_files(folder, vector_file)
        if not record.is_file():
            raise FileNotFoundError(
                f"an approximate search needs a graph, but '{folder}' has none of this layer: build it with `allennlp "
                f"elmo-neighbors graph {folder}`"
            )
        about = read_sealed(record)
        if about.get("vectors") != digests[vector_file]:
            raise ValueError(
                f"{record} must be that of the vectors in {ABOUT}, but is that of others: build the graph again"
            )
        files = listed_files(record, about)
        if path not in files or not isinstance(about.get("recall"), int | float):
            raise ValueError(
                f"{record} must have the recall and the SHA-256 of {path.name}, but has not: build it again"
            )
        check_listed_file(path, files[path], record)
        self.recall = float(about["recall"])
        self.n_bytes = path.stat().st_size
        self._index = _library().restore(str(path), view=True)
        if self._index is None or (len(self._index), self._index.ndim) != (n_words, dim):
            raise ValueError(f"{path} must have {n_words:,} words of {dim} numbers, but has not: build it again")
        self._index.expansion_search = _LOOKED_AT_SEARCH

    def nearest_rows(
        self, matrix: np.ndarray, targets: np.ndarray, n_best: int
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As the function `nearest_rows`, but some rows may be missed; the cosines are exact."""
        return _nearest_rows(self._index, matrix, targets, n_best)


def build_graph(index: "NeighborIndex", layer: Layer | None = None, *, progress: bool | None = None) -> Graph:
    """
    Builds the graph of a layer, next to its vectors, in the place of an older one, and measures its recall.

    # Parameters

    index
        The index.
    layer
        One of its layers; `None`: the last.
    progress
        Whether to show on stderr how far it is. `None`: if stderr is a terminal.

    # Returns

    `Graph`
        The graph.

    # Raises

    `ModuleNotFoundError`
        If usearch is not installed.
    `ValueError`
        If the index has not that layer.
    """
    vectors, name = index.vectors(layer), index.vector_file(layer)
    path, record = _graph_files(index.folder, name)
    # Numbers of 8 bits: half the memory. The order of what is found is that of the vectors on disk.
    graph = _library()(ndim=index.dim, metric="cos", dtype="i8", connectivity=_LINKS, expansion_add=_LOOKED_AT_BUILD)
    graph.expansion_search = _LOOKED_AT_SEARCH
    with progress_bar(len(vectors), progress, "words") as advance:
        for start in range(0, len(vectors), _AT_ONCE):
            block = np.asarray(vectors[start : start + _AT_ONCE])
            graph.add(np.arange(start, start + len(block)), block, copy=True)
            advance(len(block))
    recall = _measured_recall(graph, vectors)
    # So that no record is ever next to another graph.
    record.unlink(missing_ok=True)
    with atomic_file(path) as temporary:
        graph.save(str(temporary))
    files = {path.name: sha256_of(path)}
    write_sealed(record, {"vectors": index.digest_of(layer), "recall": recall, "queries": _MEASURED, "files": files})
    return index.graph(layer)


def _library() -> Any:
    try:
        from usearch.index import Index
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "an approximate search needs usearch, which is not installed: `pip install usearch`, or omit --approximate",
            name=error.name,
        ) from None
    return Index


def _graph_files(folder: Path, vector_file: str) -> tuple[Path, Path]:
    """The graph, and the file that says what it is of."""
    path = (folder / vector_file).with_suffix(".graph")
    return path, path.with_name(f"{path.name}.json")


def _nearest_rows(
    graph: Any, matrix: np.ndarray, targets: np.ndarray, n_best: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    found = []
    for target in targets:
        rows = np.sort(graph.search(target, min(n_best, len(matrix))).keys).astype(np.int64)
        found.append(cosines_of(matrix, rows, target))
    return [cosines for cosines, _ in found], [rows for _, rows in found]


def _measured_recall(graph: Any, matrix: np.ndarray) -> float:
    """The mean share of the ten nearest words, the word itself not counted, that are found."""
    queries = np.unique(np.linspace(0, len(matrix) - 1, _MEASURED).astype(np.int64))
    targets = matrix[queries].astype(np.float32)
    targets /= np.maximum(np.linalg.norm(targets, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    exact, _ = nearest_rows(matrix, targets, _NEAREST + 1)
    # As many as a search of ten neighbours asks for.
    found, _ = _nearest_rows(graph, matrix, targets, 4 * _NEAREST + 16)
    shares = []
    for wanted, cosines in zip(exact, found, strict=True):
        n_found = min(int((cosines >= wanted[-1] - _SAME).sum()), len(wanted))
        # The nearest is the word itself.
        shares.append(max(n_found - 1, 0) / max(len(wanted) - 1, 1))
    return float(np.mean(shares))
