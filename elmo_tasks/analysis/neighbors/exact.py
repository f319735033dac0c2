"""Exact search for the nearest rows of a matrix that is mapped into memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

__all__ = ["cosines_of", "has_library", "nearest_rows"]

# Rows that are brought into float32 at once: they and their copy fit into the cache of a core. With 65,536 the same
# search took five times as long.
_BLOCK = 2048
# Rows from which the best are chosen at once.
_BLOCKS = 32
# With fewer targets the library is faster, which computes in the type of the matrix; with more our own product of
# matrices, which reads each row once for all of them.
_FEW_TARGETS = 4


def has_library() -> bool:
    """Whether usearch is installed (the extra `neighbors`)."""
    try:
        import usearch.index  # noqa: F401
    except ImportError:
        return False
    return True


def nearest_rows(
    matrix: np.ndarray, targets: np.ndarray, n_best: int, rows: np.ndarray | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """
    # Parameters

    matrix
        Shape `(n_rows, dim)`; float16 or float32 of the length 1, or int8 of any length but 0.
    targets
        Shape `(n_targets, dim)`, float32, of the length 1.
    n_best
        How many rows for each; all if there are fewer.
    rows
        The only rows that are looked at, ascending; `None`: all.

    # Returns

    `Tuple[List[np.ndarray], List[np.ndarray]]`
        For each target the highest cosines, and the rows that have them.
    """
    n_best = min(n_best, len(matrix) if rows is None else len(rows))
    if rows is None and len(targets) < _FEW_TARGETS and has_library():
        return _by_library(matrix, targets, n_best)
    return _by_products(matrix, targets, n_best, rows)


def cosines_of(matrix: np.ndarray, rows: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cosines of some rows with a target of the length 1, in float32, and the rows: the nearest first."""
    chosen = matrix[rows].astype(np.float32)
    cosines = chosen @ target
    if matrix.dtype == np.int8:
        cosines /= np.maximum(np.linalg.norm(chosen, axis=1), np.finfo(np.float32).tiny)
    order = np.argsort(-cosines, kind="stable")
    return cosines[order], rows[order]


def _by_library(matrix: np.ndarray, targets: np.ndarray, n_best: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    from usearch.index import MetricKind, search

    # It takes targets of the type of the matrix, and int8 has no fractions: its own order is that of rounded targets.
    # So more are asked for, and put in order by the targets as they are.
    n_asked = min(2 * n_best + 64, len(matrix))
    found = []
    for target in targets:
        rounded = target * (127 / np.abs(target).max()) if matrix.dtype == np.int8 else target
        typed = np.rint(rounded).astype(np.int8) if matrix.dtype == np.int8 else rounded.astype(matrix.dtype)
        # A product is less work than a cosine; rows of int8 have different lengths.
        metric = MetricKind.Cos if matrix.dtype == np.int8 else MetricKind.IP
        keys = search(matrix, typed, n_asked, metric, exact=True).keys
        cosines, rows = cosines_of(matrix, np.sort(keys).astype(np.int64), target)
        found.append((cosines[:n_best], rows[:n_best]))
    return [cosines for cosines, _ in found], [rows for _, rows in found]


def _by_products(
    matrix: np.ndarray, targets: np.ndarray, n_best: int, rows: np.ndarray | None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    n_all, n_together = len(matrix) if rows is None else len(rows), _BLOCKS * _BLOCK
    of_targets = torch.from_numpy(targets)

    def best_of(first: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Of some rows the highest cosines, shape `(n_targets, n_best)`, and their numbers."""
        last = min(first + n_together, n_all)
        # Shape: (n_targets, last - first)
        cosines = torch.empty(len(targets), last - first)
        for start in range(first, last, _BLOCK):
            end = min(start + _BLOCK, last)
            # Shape: (n_block, dim)
            block = torch.from_numpy(matrix[start:end] if rows is None else matrix[rows[start:end]]).float()
            products = of_targets @ block.T
            if matrix.dtype == np.int8:
                products /= block.norm(dim=1).clamp_min(torch.finfo(torch.float32).tiny)
            cosines[:, start - first : end - first] = products
        best, numbers = cosines.topk(min(n_best, last - first))
        return best, numbers + first

    # Threads of our own, each with its own blocks: torch's would wait for each other in each of these small products.
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(best_of, range(0, n_all, n_together)))
    finally:
        torch.set_num_threads(n_threads)
    # Shape of each: (n_targets, n_best)
    best, order = torch.cat([best for best, _ in parts], 1).topk(n_best)
    numbers = torch.cat([numbers for _, numbers in parts], 1).gather(1, order).numpy()
    return list(best.numpy()), list(numbers if rows is None else rows[numbers])
