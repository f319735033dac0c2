"""The layers of a batch, from a layer cache and, where it lacks them, from the model that computes them."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from elmo_tasks.bilm.cache.layer_cache import LayerCache

__all__ = ["cached_layers", "numbers_of_torch"]

# How torch computes products of float32 matrices. Since torch 2.9 the old names cannot be read once a new one is set.
_OLD_PRECISIONS = ("cuda.matmul.allow_tf32", "cudnn.allow_tf32")
_NEW_PRECISIONS = tuple(
    f"{backend}fp32_precision"
    for backend in ("", "cuda.matmul.", "cudnn.", "cudnn.conv.", "mkldnn.", "mkldnn.matmul.", "mkldnn.conv.")
)


def cached_layers(
    cache: LayerCache,
    model: bytes,
    sentences: Sequence[np.ndarray],
    mask: np.ndarray,
    size: tuple[int, int],
    compute: Callable[[list[int]], list[np.ndarray]],
) -> np.ndarray:
    """
    Reads the layers of a batch from a cache, and adds those that it lacks.

    # Parameters

    cache
        The cache.
    model
        A digest of all that determines the layers: see `LayerCache.read`.
    sentences
        The ids of each, of shape `(n_words, width)`.
    mask
        Shape `(batch_size, timesteps)`: where there is a word. The words of a sentence come before its padding.
    size
        The number of layers, and the units of each.
    compute
        Takes the rows of the sentences that the cache lacks, and returns the layers of each, of shape
        `(n_layers, n_words, dim)`, as `LayerCache.rounded` returns them.

    # Returns

    `np.ndarray`
        Shape `(n_layers, batch_size, timesteps, dim)`, float32, zero where there is no word.
    """
    n_layers, dim = size
    # Shape: (n_layers, batch_size, timesteps, dim)
    layers = np.empty((n_layers, *mask.shape, dim), np.float32)
    # Shape of each: (n_layers, n_words, dim)
    targets = [layers[:, row, : len(words)] for row, words in enumerate(sentences)]
    found = cache.read(model, sentences, targets)
    missing = [row for row, is_found in enumerate(found) if not is_found]
    if missing:
        computed = compute(missing)
        for row, array in zip(missing, computed, strict=True):
            targets[row][...] = array
        cache.write(model, [sentences[row] for row in missing], computed)
    layers[:, ~mask] = 0.0
    return layers


def numbers_of_torch() -> list[Any]:
    """The settings of torch that say how exact its products are."""
    names = _NEW_PRECISIONS if hasattr(torch.backends, "fp32_precision") else _OLD_PRECISIONS
    return [attrgetter(name)(torch.backends) for name in names]
