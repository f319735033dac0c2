"""Vectors as points of a map."""

import importlib.util
from typing import Literal

import numpy as np

__all__ = ["METHODS", "Method", "projected"]

Method = Literal["pca", "umap"]

METHODS: tuple[Method, ...] = ("pca", "umap") if importlib.util.find_spec("umap") else ("pca",)
"""Those whose packages are installed."""

# UMAP finds the neighbours of each vector among the others.
_LEAST_FOR_UMAP = 8


def projected(vectors: np.ndarray, method: Method = "pca") -> np.ndarray:
    """
    # Parameters

    vectors
        Shape `(n, dim)`.
    method
        `"pca"`: the two directions in which the vectors vary most. `"umap"`: near vectors stay near; distances between
        groups mean little.

    # Returns

    `np.ndarray`
        Shape `(n, 2)`. Zeros for one vector.

    # Raises

    `ValueError`
        If the method is unknown or its package is not installed, or there are too few vectors for UMAP.
    """
    if method not in METHODS:
        remedy = ": `pip install umap-learn`" if method == "umap" else ""
        raise ValueError(f"the map must be by one of {', '.join(METHODS)}, but is by {method!r:.100}{remedy}")
    if method == "umap":
        if len(vectors) < _LEAST_FOR_UMAP:
            raise ValueError(
                f"UMAP needs at least {_LEAST_FOR_UMAP} occurrences of the word, but there are {len(vectors)}: take PCA"
            )
        from umap import UMAP

        # With a seed it has one job, and warns if that is not said.
        method_of_umap = UMAP(n_neighbors=min(15, len(vectors) - 1), random_state=0, n_jobs=1)
        places: np.ndarray = method_of_umap.fit_transform(vectors)
        return places
    points = np.zeros((len(vectors), 2))
    if len(vectors) < 2:
        return points
    centered = vectors - vectors.mean(0)
    # Principal components. Shapes: (n, n_components), (n_components,)
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    points[:, : len(sizes)] = (left * sizes)[:, :2]
    return points
