"""
The layers of sentences, which a frozen model computes once and which are read later: by other runs
from one SQLite file (`LayerCache`), by the other models of a process from memory (`LayerMemory`).

`CachedBilm` computes only the sentences that are not in such a store; for other models than the
biLM, `read_or_compute` does that.
"""

import hashlib
import logging
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
import torch

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.frozen_value import FrozenValue
from elmo_tasks.bilm.outputs import BilmOutput
from elmo_tasks.bilm.packing import mask_of
from elmo_tasks.bilm.weights import weights_digest
from elmo_tasks.files.recent import Recent

__all__ = ["CachedBilm", "LayerCache", "LayerMemory", "LayerStore"]
__all__ += ["digest_of_model", "forget_shared_layers", "is_cacheable", "read_or_compute"]
__all__ += ["sentence_key", "shared_bilm"]

logger = logging.getLogger(__name__)

# Raised when the code computes other layers for the same words and weights, or stores them in other
# bytes.
_FORMAT = 1

_USED_BYTES = """
    SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_DELETE_OLDEST = (
    "DELETE FROM layers WHERE rowid IN (SELECT rowid FROM layers ORDER BY rowid LIMIT 100)"
)


class LayerStore(ABC):
    """
    The layers of sentences by keys, which depend on everything that the layers depend on. Threads
    may share it.
    """

    dtype: np.dtype

    @abstractmethod
    def read(self, keys: Sequence[bytes], targets: Sequence[np.ndarray]) -> list[bool]:
        """
        Copies the layers of each stored sentence, of shape `(n_layers, n_words, dim)`, into its
        target, and returns which sentences are stored. Targets have the type of the store, because
        torch converts the whole batch from float16 afterwards, which is much faster than sentence
        by sentence.
        """

    @abstractmethod
    def write(self, keys: Sequence[bytes], layers: Sequence[np.ndarray]) -> None:
        """
        Stores the layers of sentences, which nobody may change afterwards; the shapes and the type
        are as in `read`.
        """


class LayerCache(LayerStore):
    """
    Stores layers in a file, which processes and threads may share. Values have no checksums. If
    SQLite fails (disk full, read-only, damaged file, a lock held for 20 seconds), the cache logs
    one warning and turns itself off.

    # Parameters

    folder
        A folder on a local disk, created on first use if its parent exists.
    dtype
        `float32` returns the stored bits; `float16` takes half the space and rounds to three
        digits.
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
        # An SQLite connection belongs to one thread of one process: a pickled or forked copy opens
        # its own.
        self._of_thread = threading.local()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_of_thread"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _of_thread=threading.local())

    def read(self, keys: Sequence[bytes], targets: Sequence[np.ndarray]) -> list[bool]:
        is_stored = [False] * len(keys)
        if self._is_off:
            return is_stored
        query = "SELECT value FROM layers WHERE key = ?"
        try:
            database = self._database()
            for row, (key, target) in enumerate(zip(keys, targets, strict=True)):
                if stored := database.execute(query, (self._key(key),)).fetchone():
                    target[...] = np.frombuffer(stored[0], self.dtype).reshape(target.shape)
                    is_stored[row] = True
        except (sqlite3.Error, OSError) as error:
            self._turn_off(error)
        return is_stored

    def write(self, keys: Sequence[bytes], layers: Sequence[np.ndarray]) -> None:
        if self._is_off:
            return
        rows = [(self._key(key), array.tobytes()) for key, array in zip(keys, layers, strict=True)]
        n_bytes = sum(len(value) for _, value in rows)
        try:
            with (database := self._database()):
                while database.execute(_USED_BYTES).fetchone()[0] + n_bytes > self._max_bytes:
                    if not database.execute(_DELETE_OLDEST).rowcount:
                        break
                database.executemany(
                    "INSERT OR REPLACE INTO layers (key, value) VALUES (?, ?)", rows
                )
        except (sqlite3.Error, OSError) as error:
            self._turn_off(error)

    def _key(self, key: bytes) -> bytes:
        # Stores of both types may share a file.
        return key + self.dtype.name.encode()

    def _database(self) -> sqlite3.Connection:
        process, connection = getattr(self._of_thread, "connection", (None, None))
        if connection is None or process != os.getpid():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            # A garbage collection in another thread may close it.
            connection = sqlite3.connect(
                self.folder / "layers.sqlite", timeout=20.0, check_same_thread=False
            )
            # A sentence takes about 50 kB with the small biLM, so pages larger than the default are
            # faster.
            connection.execute("PRAGMA page_size = 16384")
            connection.execute("PRAGMA journal_mode = WAL")
            # If the machine crashes, the last layers may be lost, but the others are not damaged.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS layers (key BLOB UNIQUE, value BLOB)")
            self._of_thread.connection = os.getpid(), connection
        return connection

    def _turn_off(self, error: Exception) -> None:
        self._is_off = True
        logger.warning(
            "the layer cache %s is off for the rest of this process: %s", self.folder, error
        )


class LayerMemory(LayerStore):
    """Keeps layers of at most `max_bytes` in memory, for threads of one process: see `Recent`."""

    dtype = np.dtype(np.float32)

    def __init__(self, max_bytes: float, *, keeps_first: bool = False) -> None:
        self._arrays: Recent[np.ndarray] = Recent(max_bytes, keeps_first=keeps_first)

    def read(self, keys: Sequence[bytes], targets: Sequence[np.ndarray]) -> list[bool]:
        arrays = [self._arrays.get(key) for key in keys]
        for array, target in zip(arrays, targets, strict=True):
            if array is not None:
                target[...] = array
        return [array is not None for array in arrays]

    def write(self, keys: Sequence[bytes], layers: Sequence[np.ndarray]) -> None:
        for key, array in zip(keys, layers, strict=True):
            # With the key and the objects.
            self._arrays.put(key, array, array.nbytes + 400)


class CachedBilm:
    """
    A frozen biLM with a store of layers. Sentences that are not in the store are computed as one
    smaller batch, and sentences that a batch has several times only once.

    The store is bypassed if a parameter requires a gradient, and for float64, which the store would
    round. Weights may be loaded or changed in place at any time; `WeightsState` names the changes
    that are not detected.
    """

    def __init__(self, bilm: Bilm, store: LayerStore) -> None:
        self.bilm = bilm
        self.store = store
        self._digest: FrozenValue[bytes] = FrozenValue()

    def __call__(self, inputs: torch.Tensor | Sequence[Sequence[str]]) -> BilmOutput:
        """
        Same as `Bilm.forward`. A stored sentence keeps the layers from the batch in which it was
        first computed; in a batch of a different size, they could differ by about 1e-6.
        """
        bilm = self.bilm
        weights = list(bilm.parameters())
        character_ids = inputs if isinstance(inputs, torch.Tensor) else bilm.word_rows.batch(inputs)
        if not is_cacheable(weights):
            # Training may change weights in ways that `WeightsState` does not detect.
            self._digest.forget()
            return bilm(character_ids)  # type: ignore[no-any-return]
        ids = character_ids.cpu()
        # Shape: (batch_size, timesteps)
        mask = torch.from_numpy(mask_of(ids, bilm.word_rows))
        digest = self.model_digest()
        keys = []
        for row, n_words in zip(ids.numpy(), mask.sum(-1).tolist(), strict=True):
            keys.append(sentence_key(digest, row[:n_words]))
        shape = bilm.num_layers, bilm.get_output_dim()

        def compute(rows: list[int]) -> BilmOutput:
            return bilm(character_ids[rows])  # type: ignore[no-any-return]

        return read_or_compute(self.store, keys, mask, shape, weights[0], compute)

    def model_digest(self) -> bytes:
        """
        A digest of everything that determines the layers; the weights are hashed again only if they
        changed.
        """
        options = self.bilm.options
        # The number 3 in a config is 3.0 in a file.
        options = replace(
            options,
            cell_clip=options.cell_clip and float(options.cell_clip),
            projection_clip=options.projection_clip and float(options.projection_clip),
        )
        return digest_of_model(self._digest, self.bilm, options, self.bilm.kernel)


def is_cacheable(weights: Sequence[torch.Tensor]) -> bool:
    """Whether the weights are frozen, and not in float64, which a store would round."""
    is_trained = any(weight.requires_grad for weight in weights)
    return not is_trained and weights[0].dtype != torch.float64


def digest_of_model(
    last: FrozenValue[bytes], model: torch.nn.Module, options: object, setting: str
) -> bytes:
    """
    A digest of everything that a frozen model's layers depend on: its options and weights, one more
    setting, the device and torch's settings. `last` keeps it until one of them changes.
    """
    weights = list(model.parameters())
    device = weights[0].device.type
    settings = options, setting, device, _product_precision(), _FORMAT

    def make() -> bytes:
        digest = weights_digest(options, model.state_dict())
        return hashlib.blake2b(repr(settings).encode() + digest, digest_size=32).digest()

    return last(weights, settings, make)


def sentence_key(digest: bytes, ids: np.ndarray) -> bytes:
    """The key of a sentence in a store, from the digest of the model and the sentence's ids."""
    return hashlib.blake2b(ids.astype(np.int32).tobytes(), key=digest, digest_size=32).digest()


def read_or_compute(
    store: LayerStore,
    keys: Sequence[bytes],
    mask: torch.Tensor,
    shape: tuple[int, int],
    weight: torch.Tensor,
    compute: Callable[[list[int]], BilmOutput],
) -> BilmOutput:
    """
    The layers of a batch. Those of the sentences that are not in the store are computed, and then
    stored.

    # Parameters

    keys
        The key of each sentence: see `sentence_key`.
    mask
        Shape `(batch_size, timesteps)`: true for words, false for padding.
    shape
        The number of layers, and the units of each.
    weight
        A weight of the model; the layers have its type and device.
    compute
        The output of the model for some rows of the batch.
    """
    lengths: list[int] = mask.sum(-1).tolist()
    n_layers, dim = shape
    # Shape: (n_layers, batch_size, timesteps, dim)
    layers = np.zeros((n_layers, *mask.shape, dim), store.dtype)
    # Shape: (n_layers, n_words, dim) each
    targets = [layers[:, row, :n_words] for row, n_words in enumerate(lengths)]
    is_stored = store.read(keys, targets)
    # The first row of each sentence that is not stored.
    missing: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        if not is_stored[row]:
            missing.setdefault(key, row)
    rows = list(missing.values())
    if len(rows) == len(keys) and store.dtype == np.float32:
        # The usual case for new texts, without further copies.
        output = compute(rows)
        _write(store, keys, output, lengths)
        return output
    if missing:
        # Shape: (n_layers, n_missing, timesteps, dim)
        computed = torch.stack(compute(rows).layers).float().cpu().numpy()
        for position, row in enumerate(rows):
            targets[row][...] = computed[:, position, : lengths[row]]
        for row, key in enumerate(keys):
            if not is_stored[row] and row != missing[key]:
                targets[row][...] = targets[missing[key]]
        store.write(list(missing), [targets[row].copy() for row in rows])
    return BilmOutput(tuple(torch.from_numpy(layers).to(weight)), mask.to(weight.device))


def _write(
    store: LayerStore, keys: Sequence[bytes], output: BilmOutput, lengths: Sequence[int]
) -> None:
    # Shape: (batch_size, timesteps, dim) each
    layers = [layer.float().cpu().numpy() for layer in output.layers]
    layers_of_sentences = []
    for row, n_words in enumerate(lengths):
        layers_of_sentences.append(np.stack([layer[row, :n_words] for layer in layers]))
    store.write(keys, layers_of_sentences)


_SHARED_BYTES = 64 * 2**20
# Weak, so a biLM and its layers are freed with its last model.
_SHARED: WeakValueDictionary[tuple[bytes, str], CachedBilm] = WeakValueDictionary()


def shared_bilm(bilm: Bilm) -> CachedBilm:
    """
    The biLM with these weights, this precision and device that models of this process already share
    for predictions, or else the one that is given, with a store of 64 MB for its last sentences.
    Nobody may train or move it.
    """
    cached = CachedBilm(bilm, LayerMemory(_SHARED_BYTES))
    return _SHARED.setdefault((cached.model_digest(), str(next(bilm.parameters()).device)), cached)


def forget_shared_layers() -> None:
    """
    Empties the stores of `shared_bilm`. Otherwise, results may be rounded differently if this
    process has computed a sentence before, in a batch of a different size.
    """
    for cached in list(_SHARED.values()):
        cached.store = LayerMemory(_SHARED_BYTES)


def _product_precision() -> tuple[str, ...]:
    """torch's settings for the precision of float32 products, which torch 2.9 renamed."""
    if hasattr(torch.backends, "fp32_precision"):
        mkldnn: Any = torch.backends.mkldnn
        return torch.backends.cuda.matmul.fp32_precision, mkldnn.matmul.fp32_precision
    return (torch.get_float32_matmul_precision(),)
