import builtins
from typing import Any

import numpy as np
import pytest

from elmo_tasks.analysis.neighbors import exact
from elmo_tasks.analysis.neighbors.exact import nearest_rows

NEEDS_LIBRARY = pytest.mark.skipif(not exact.has_library(), reason="usearch is not installed: `pip install usearch`")


def matrix_of(dtype: str, n_rows: int = 300, dim: int = 24) -> np.ndarray:
    """Rows of different lengths, some of them twice."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_rows, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[7] = rows[200]
    return (
        np.rint(rows * 127 / np.abs(rows).max(1, keepdims=True)).astype(dtype)
        if dtype == "int8"
        else rows.astype(dtype)
    )


def targets_of(n: int, dim: int = 24) -> np.ndarray:
    targets = np.random.default_rng(1).standard_normal((n, dim)).astype(np.float32)
    unit: np.ndarray = targets / np.linalg.norm(targets, axis=1, keepdims=True)
    return unit


def by_numpy(matrix: np.ndarray, target: np.ndarray, n: int, rows: np.ndarray) -> list[float]:
    """The highest cosines, in float64; rows of floats have the length 1."""
    chosen = matrix[rows].astype(float)
    lengths = np.linalg.norm(chosen, axis=1) if matrix.dtype == np.int8 else 1.0
    return sorted(chosen @ target / lengths, reverse=True)[:n]


class TestNearestRows:
    @pytest.mark.parametrize("library", [False, pytest.param(True, marks=NEEDS_LIBRARY)])
    @pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
    @pytest.mark.parametrize(("n_targets", "n_best", "subset"), [(1, 10, False), (5, 10, False), (2, 500, True)])
    def test_the_highest_cosines_are_found(self, monkeypatch, dtype, library, n_targets, n_best, subset):
        """Oracle: all cosines in NumPy, sorted; each row is returned once, with its own cosine. Blocks of 16 rows."""
        monkeypatch.setattr(exact, "has_library", lambda: library)
        monkeypatch.setattr(exact, "_BLOCK", 16)
        monkeypatch.setattr(exact, "_BLOCKS", 3)
        matrix, targets = matrix_of(dtype), targets_of(n_targets)
        rows = np.arange(0, 300, 7) if subset else np.arange(300)
        found = nearest_rows(matrix, targets, n_best, rows if subset else None)
        for target, cosines, numbers in zip(targets, *found, strict=True):
            assert cosines == pytest.approx(by_numpy(matrix, target, n_best, rows), abs=1e-5)
            assert len(set(numbers.tolist())) == len(numbers) == min(n_best, len(rows))
            assert set(numbers.tolist()) <= set(rows.tolist())
            for cosine, number in zip(cosines, numbers, strict=True):
                assert cosine == pytest.approx(by_numpy(matrix, target, 1, np.array([number]))[0], abs=1e-5)

    @NEEDS_LIBRARY
    def test_one_target_is_searched_by_the_library_and_many_by_products(self, monkeypatch):
        """Oracle: which of the two functions is called."""
        called = []
        for name in ("_by_library", "_by_products"):
            monkeypatch.setattr(exact, name, lambda *given, name=name: called.append(name))
        nearest_rows(matrix_of("float16"), targets_of(1), 3)
        nearest_rows(matrix_of("float16"), targets_of(20), 3)
        nearest_rows(matrix_of("float16"), targets_of(1), 3, np.arange(4))
        assert called == ["_by_library", "_by_products", "_by_products"]

    def test_without_the_library_nothing_is_missing(self, monkeypatch):
        """Oracle: what Python says of a package that is not installed."""

        def missing(name: str, *given: Any, **named: Any) -> Any:
            if name.startswith("usearch"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return original(name, *given, **named)

        original = builtins.__import__
        monkeypatch.setattr(builtins, "__import__", missing)
        assert exact.has_library() is False
