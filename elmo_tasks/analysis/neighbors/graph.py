"""The graph of a layer of an index, for approximate search: HNSW (Malkov and Yashunin 2016), by usearch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elmo_tasks.analysis.neighbors.exact import cosines_of
from elmo_tasks.analysis.neighbors.files import ABOUT
from elmo_tasks.files.sealed_json import check_listed_file, listed_files, read_sealed

__all__ = ["Graph", "graph_files", "library", "opened_graph", "rows_by_graph"]

# How many words a search looks at: more find more, and take longer.
_LOOKED_AT = 128


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
        path, record = graph_files(folder, vector_file)
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
        recall = about.get("recall")
        if path not in files or not isinstance(recall, int | float) or not 0 <= recall <= 1:
            raise ValueError(
                f"{record} must have the recall and the SHA-256 of {path.name}, but has not: build it again"
            )
        check_listed_file(path, files[path], record)
        self.recall = float(recall)
        self.n_bytes = path.stat().st_size
        self._index = opened_graph(path)
        if (len(self._index), self._index.ndim) != (n_words, dim):
            raise ValueError(f"{path} must have {n_words:,} words of {dim} numbers, but has not: build it again")

    def nearest_rows(
        self, matrix: np.ndarray, targets: np.ndarray, n_best: int
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As the function `nearest_rows`, but some rows may be missed; the cosines are exact."""
        return rows_by_graph(self._index, matrix, targets, n_best)


def library() -> Any:
    """usearch's index; without it, an error says what to install."""
    try:
        from usearch.index import Index
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "an approximate search needs usearch, which is not installed: `pip install usearch`, or omit --approximate",
            name=error.name,
        ) from None
    return Index


def opened_graph(path: Path) -> Any:
    """The library's index of a file that it has written, mapped into memory."""
    graph = library().restore(str(path), view=True)
    if graph is None:
        raise ValueError(f"{path} must be a graph of usearch, but is not: build it again")
    graph.expansion_search = _LOOKED_AT
    return graph


def graph_files(folder: Path, vector_file: str) -> tuple[Path, Path]:
    """The graph, and the file that says what it is of."""
    path = (folder / vector_file).with_suffix(".graph")
    return path, path.with_name(f"{path.name}.json")


def rows_by_graph(
    graph: Any, matrix: np.ndarray, targets: np.ndarray, n_best: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """See `Graph.nearest_rows`; for the library's own index."""
    found = []
    for target in targets:
        rows = np.sort(graph.search(target, min(n_best, len(matrix))).keys).astype(np.int64)
        found.append(cosines_of(matrix, rows, target))
    return [cosines for cosines, _ in found], [rows for _, rows in found]
