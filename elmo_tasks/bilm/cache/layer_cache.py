"""The layer cache: layers of sentences, kept on disk."""

import hashlib
import os
from collections.abc import Sequence
from typing import Literal

import numpy as np

from elmo_tasks.bilm.cache.layer_store import LayerStore

__all__ = ["LayerCache"]

_DTYPES = ("float32", "float16")


class LayerCache:
    """
    The layers of sentences, kept in a folder from one run to the next. A biLM without state gives a sentence the same
    layers in any batch: the key is the words and a digest of what computed the layers (weights and precision).

    A disk error is not raised: see `LayerStore`. In `float32` layers are read bit for bit as they were written; in
    `float16` they take half the space, and are rounded to three digits.

    # Parameters

    folder
        The folder, for the cache alone. It is created at the first use if its parent exists.
    dtype
        The type in which layers are stored. One folder can hold both.
    max_bytes
        The size limit: see `LayerStore`.

    # Raises

    `ValueError`
        If `dtype` is another, or `max_bytes` is too small.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        dtype: Literal["float32", "float16"] = "float32",
        max_bytes: int | None = None,
    ) -> None:
        if dtype not in _DTYPES:
            raise ValueError(f"the dtype of a layer cache must be one of {_DTYPES}, but is {dtype!r}")
        self._store = LayerStore(folder, max_bytes)
        self._dtype = np.dtype(dtype)

    def read(self, model: bytes, sentences: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> list[bool]:
        """
        Looks sentences up.

        # Parameters

        model
            The digest of weights and precision, at most 64 bytes.
        sentences
            The ids of each, of shape `(n_words, width)`: see `WordRows`.
        targets
            Arrays that receive the layers of each, float32, of shape `(n_layers, n_words, dim)`.

        # Returns

        `List[bool]`
            Which sentences were found. The targets of the others are undefined.
        """
        keys = [self._key(model, sentence) for sentence in sentences]
        return self._store.read(list(zip(keys, targets, strict=True)), self._dtype)

    def write(self, model: bytes, sentences: Sequence[np.ndarray], layers: Sequence[np.ndarray]) -> None:
        """Keeps the layers of sentences, as `rounded` returned them; the arguments are those of `read`."""
        self._store.write(
            {
                self._key(model, sentence): array
                for sentence, array in zip(sentences, layers, strict=True)
                if array.dtype == self._dtype
            }
        )

    def rounded(self, layers: np.ndarray) -> np.ndarray:
        """
        Rounds layers as the cache stores them, so that the first use returns what later reads return. Layers with
        numbers that are too large for float16 are returned unchanged, and `write` ignores them.
        """
        if layers.dtype == self._dtype:
            return layers
        with np.errstate(over="ignore"):
            kept = layers.astype(self._dtype)
        return kept if np.isfinite(kept).all() else layers

    def _key(self, model: bytes, sentence: np.ndarray) -> bytes:
        # Ids of code points need more than two bytes.
        is_narrow = int(sentence.max(initial=0)) < 2**15
        words = hashlib.blake2b(
            sentence.astype(np.int16 if is_narrow else np.int32).tobytes(), key=model, digest_size=32
        )
        # The same bytes may be other ids, or the same ids words of other lengths.
        words.update(f"{sentence.shape} {is_narrow} {self._dtype.str}".encode())
        return words.digest()
