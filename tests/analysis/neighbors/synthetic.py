"""Indexes of random vectors, as large as a test wants them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from elmo_tasks.analysis import NeighborIndex, build_index
from elmo_tasks.bilm.characters import BYTES
from tests.bilm.helpers import SMALL


class RandomVectors:
    """In the place of `Elmo`: a random vector for each word."""

    def __init__(self, dim: int, seed: int) -> None:
        self.dim, self.n_layers = dim, 3
        self.bilm = SimpleNamespace(word_rows=BYTES, options=SMALL, precision="float32", state_dict=dict)
        self._random = np.random.default_rng(seed)

    def embed_iter(self, sentences: Any, *, layers: Any, **options: Any) -> Any:
        for words in sentences:
            shape = (self.n_layers, len(words), self.dim) if layers == "all" else (len(words), self.dim)
            yield self._random.standard_normal(shape).astype(np.float32)


def synthetic_index(folder: Path, *, n_sentences: int, dim: int, seed: int = 0, **options: Any) -> NeighborIndex:
    """Sentences of ten different words."""
    sentences = [[f"word{number}-{place}" for place in range(10)] for number in range(n_sentences)]
    elmo: Any = RandomVectors(dim, seed)
    return build_index(elmo, sentences, folder, progress=False, **options)
