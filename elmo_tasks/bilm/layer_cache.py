"""
A cache on disk for the layers of sentences, which later runs read.

A frozen biLM computes the same layers for a sentence in every epoch and run. `LayerCache` stores them in one SQLite
file; `CachedBilm` computes only the sentences that are not in the file.
"""

import hashlib
import logging
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.frozen_value import FrozenValue
from elmo_tasks.bilm.outputs import BilmOutput
from elmo_tasks.bilm.packing import mask_of
from elmo_tasks.bilm.weights import weights_digest

__all__ = ["CachedBilm", "LayerCache"]

logger = logging.getLogger(__name__)

# Raised when the code computes other layers for the same words and weights, or stores them in other bytes.
_FORMAT = 1

_USED_BYTES = """
    SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_DELETE_OLDEST = "DELETE FROM layers WHERE rowid IN (SELECT rowid FROM layers ORDER BY rowid LIMIT 100)"


class LayerCache:
    """
    Stores layers by a sentence's word ids and a digest of the model. Processes and threads may share the file. Values
    have no checksums. If SQLite fails (disk full, read-only, damaged file, a lock held for 20 seconds), the cache logs
    one warning and turns itself off.

    # Parameters

    folder
        A folder on a local disk, created on first use if its parent exists.
    dtype
        `float32` returns the stored bits; `float16` takes half the space and rounds to three digits.
    max_bytes
        The largest size of the layers, by default 20 GB; the oldest are deleted to stay below it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        dtype: Literal["float32", "float16"] = "float32",
        max_bytes: int | None = None,
    ) -> None:
        self.folder = Path(folder).expanduser()
        self.dtype = np.dtype(dtype)
        self._max_bytes = max_bytes or 20 * 10**9
        self._is_off = False
        # An SQLite connection belongs to one thread of one process: a pickled or forked copy opens its own.
        self._of_thread = threading.local()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_of_thread"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _of_thread=threading.local())

    def read(self, model: bytes, sentences: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> list[bool]:
        """
        Copies the layers of each stored sentence, of shape `(n_layers, n_words, dim)`, into its target, and returns
        which sentences were found. `model` is a digest of at most 64 bytes; `sentences` are ids, of shape
        `(n_words, width)`. Targets have the cache's type: torch converts a whole batch of float16 much faster later.
        """
        found = [False] * len(sentences)
        if self._is_off:
            return found
        query = "SELECT value FROM layers WHERE key = ?"
        try:
            database = self._database()
            for row, (sentence, target) in enumerate(zip(sentences, targets, strict=True)):
                if stored := database.execute(query, (self._key(model, sentence),)).fetchone():
                    target[...] = np.frombuffer(stored[0], self.dtype).reshape(target.shape)
                    found[row] = True
        except (sqlite3.Error, OSError) as error:
            self._turn_off(error)
        return found

    def write(self, model: bytes, sentences: Sequence[np.ndarray], layers: Sequence[np.ndarray]) -> None:
        """Stores the layers of sentences, in the cache's type; the shapes are as in `read`."""
        if self._is_off:
            return
        rows = [
            (self._key(model, sentence), array.tobytes()) for sentence, array in zip(sentences, layers, strict=True)
        ]
        n_bytes = sum(len(value) for _, value in rows)
        try:
            with (database := self._database()):
                while database.execute(_USED_BYTES).fetchone()[0] + n_bytes > self._max_bytes:
                    if not database.execute(_DELETE_OLDEST).rowcount:
                        break
                database.executemany("INSERT OR REPLACE INTO layers (key, value) VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._turn_off(error)

    def _key(self, model: bytes, sentence: np.ndarray) -> bytes:
        words = sentence.astype(np.int32).tobytes()
        return hashlib.blake2b(words, key=model, person=self.dtype.name.encode(), digest_size=32).digest()

    def _database(self) -> sqlite3.Connection:
        process, connection = getattr(self._of_thread, "connection", (None, None))
        if connection is None or process != os.getpid():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            # A garbage collection in another thread may close it.
            connection = sqlite3.connect(self.folder / "layers.sqlite", timeout=20.0, check_same_thread=False)
            # A sentence takes about 50 kB with the small biLM, so pages larger than the default are faster.
            connection.execute("PRAGMA page_size = 16384")
            connection.execute("PRAGMA journal_mode = WAL")
            # If the machine crashes, the last layers may be lost, but the others are not damaged.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS layers (key BLOB UNIQUE, value BLOB)")
            self._of_thread.connection = os.getpid(), connection
        return connection

    def _turn_off(self, error: Exception) -> None:
        self._is_off = True
        logger.warning("the layer cache %s is off for the rest of this process: %s", self.folder, error)


class CachedBilm:
    """
    A frozen biLM with a layer cache. Sentences that are not in the cache are computed as one smaller batch.

    The cache is bypassed if a parameter requires a gradient, and for float64, which the cache would round. Weights may
    be loaded or changed in place at any time; `WeightsState` names the changes that are not detected.
    """

    def __init__(self, bilm: Bilm, cache: LayerCache) -> None:
        self.bilm = bilm
        self.cache = cache
        self._digest: FrozenValue[bytes] = FrozenValue()

    def __call__(self, inputs: torch.Tensor | Sequence[Sequence[str]]) -> BilmOutput:
        """
        Same as `Bilm.forward`. A cached sentence keeps the layers from the batch in which it was first computed; in a
        batch of a different size, they could differ by about 1e-6.
        """
        bilm, weights = self.bilm, list(self.bilm.parameters())
        character_ids = inputs if isinstance(inputs, torch.Tensor) else bilm.word_rows.batch(inputs)
        if weights[0].dtype == torch.float64 or any(weight.requires_grad for weight in weights):
            # Training may change weights in ways that `WeightsState` does not detect.
            self._digest.forget()
            return bilm(character_ids)  # type: ignore[no-any-return]
        ids = character_ids.cpu()
        # Shape: (batch_size, timesteps)
        mask = torch.from_numpy(mask_of(ids, bilm.word_rows))
        lengths = mask.sum(-1).tolist()
        # Shape of each: (n_words, width)
        sentences = [row[:n_words] for row, n_words in zip(ids.numpy(), lengths, strict=True)]
        # Shape: (n_layers, batch_size, timesteps, dim)
        layers = np.zeros((bilm.num_layers, *mask.shape, bilm.get_output_dim()), self.cache.dtype)
        # Shape of each: (n_layers, n_words, dim)
        targets = [layers[:, row, :n_words] for row, n_words in enumerate(lengths)]
        model = self._model_digest(weights)
        found = self.cache.read(model, sentences, targets)
        if missing := [row for row, is_found in enumerate(found) if not is_found]:
            # Shape: (n_layers, n_missing, timesteps, dim)
            computed = torch.stack(bilm(character_ids[missing]).layers).float().cpu().numpy()
            for position, row in enumerate(missing):
                targets[row][...] = computed[:, position, : lengths[row]]
            self.cache.write(model, [sentences[row] for row in missing], [targets[row] for row in missing])
        return BilmOutput(tuple(torch.from_numpy(layers).to(weights[0])), mask.to(weights[0].device))

    def _model_digest(self, weights: Sequence[torch.Tensor]) -> bytes:
        """A digest of everything that determines the layers; the weights are hashed again only if they changed."""
        settings = self.bilm.options, self.bilm.kernel, weights[0].device.type, _product_precision(), _FORMAT

        def make() -> bytes:
            digest = weights_digest(self.bilm.options, self.bilm.state_dict())
            return hashlib.blake2b(repr(settings).encode() + digest, digest_size=32).digest()

        return self._digest(weights, settings, make)


def _product_precision() -> tuple[str, ...]:
    """torch's settings for the precision of float32 products, which torch 2.9 renamed."""
    if hasattr(torch.backends, "fp32_precision"):
        mkldnn: Any = torch.backends.mkldnn
        return torch.backends.cuda.matmul.fp32_precision, mkldnn.matmul.fp32_precision
    return (torch.get_float32_matmul_precision(),)
