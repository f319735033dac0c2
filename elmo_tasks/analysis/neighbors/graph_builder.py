"""Building the graph of a layer of an index, and measuring what it finds."""

from typing import Any

import numpy as np

from elmo_tasks.analysis.neighbors.exact import nearest_rows
from elmo_tasks.analysis.neighbors.files import Layer
from elmo_tasks.analysis.neighbors.graph import Graph, graph_files, library, opened_graph, rows_by_graph
from elmo_tasks.analysis.neighbors.index import NeighborIndex
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import write_sealed
from elmo_tasks.progress import progress_bar

__all__ = ["build_graph"]

# Links of a word, and how many words are looked at when it gets them.
_LINKS, _LOOKED_AT_BUILD = 12, 128
# Words that are added at once: Ctrl-C waits for them.
_AT_ONCE = 8192
# Words by which the recall is measured, and how many neighbours of each.
_MEASURED, _NEAREST = 200, 10
# Cosines that differ by less are the same: sentences that are repeated have the same words.
_SAME = 1e-4


def build_graph(index: NeighborIndex, layer: Layer | None = None, *, progress: bool | None = None) -> Graph:
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
    path, record = graph_files(index.folder, name)
    # Numbers of 8 bits: half the memory. The order of what is found is that of the vectors on disk.
    graph = library()(ndim=index.dim, metric="cos", dtype="i8", connectivity=_LINKS, expansion_add=_LOOKED_AT_BUILD)
    with progress_bar(len(vectors), progress, "words") as advance:
        for start in range(0, len(vectors), _AT_ONCE):
            # Read, not mapped: ten million words fit into 4 GiB, but not next to their vectors.
            count, offset = _AT_ONCE * index.dim, start * index.dim * vectors.itemsize
            block = np.fromfile(index.folder / name, vectors.dtype, count, offset=offset).reshape(-1, index.dim)
            graph.add(np.arange(start, start + len(block)), block)
            advance(len(block))
    # So that no record is ever next to another graph.
    record.unlink(missing_ok=True)
    with atomic_file(path) as temporary:
        graph.save(str(temporary))
        del graph
        recall = _measured_recall(opened_graph(temporary), vectors)
    files = {path.name: sha256_of(path)}
    write_sealed(record, {"vectors": index.digest_of(layer), "recall": recall, "queries": _MEASURED, "files": files})
    return index.graph(layer, again=True)


def _measured_recall(graph: Any, matrix: np.ndarray) -> float:
    """The mean share of the ten nearest words, the word itself not counted, that are found."""
    queries = np.unique(np.linspace(0, len(matrix) - 1, _MEASURED).astype(np.int64))
    targets = matrix[queries].astype(np.float32)
    targets /= np.maximum(np.linalg.norm(targets, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    exact, _ = nearest_rows(matrix, targets, _NEAREST + 1)
    # As many as a search of ten neighbours asks for.
    found, _ = rows_by_graph(graph, matrix, targets, 4 * _NEAREST + 16)
    shares = []
    for wanted, cosines in zip(exact, found, strict=True):
        n_found = min(int((cosines >= wanted[-1] - _SAME).sum()), len(wanted))
        # The nearest is the word itself.
        shares.append(max(n_found - 1, 0) / max(len(wanted) - 1, 1))
    return float(np.mean(shares))
