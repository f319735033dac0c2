"""What the layers of a biLM make of a word in its sentence: cosines, a map of occurrences, and neighbours."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from elmo_tasks.analysis.neighbors import NeighborIndex, Query
from elmo_tasks.analysis.static_vectors import StaticVectors
from elmo_tasks.text import in_nfc
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["EXAMPLES", "WordTables", "WordsInContext"]

_MAX_POINTS = 200

EXAMPLES = {
    "en": [
        ["They play football on Saturdays .\nThe play opens at the theatre tonight .", "play"],
        ["She sat on the bank of the river .\nThe bank lends money to farmers .", "bank"],
        ["My watch was a birthday gift .\nHe has a gift for music .", "gift"],
    ],
    "ko": [
        ["밤새 눈이 많이 내렸다 .\n나는 눈이 나빠서 안경을 쓴다 .", "눈이"],
        ["아침에 사과를 깎아 먹었다 .\n그는 잘못을 인정하고 사과를 했다 .", "사과를"],
    ],
}
"""Sentences and a word, by spaCy's code of the language."""


class WordTables(NamedTuple):
    """
    The cosines of the occurrences of a word in each layer; their places on a map of one layer, with occurrences in the
    index; and the nearest words in the index, and of the static vector.
    """

    cosines: pd.DataFrame
    places: pd.DataFrame
    neighbors: pd.DataFrame


class WordsInContext:
    """
    # Parameters

    elmo
        The biLM.
    split
        Splits a sentence into words.
    index
        A text with the vectors of all layers.
    static
        Vectors that are the same in every sentence, for comparison.
    """

    def __init__(
        self, elmo: Elmo, split: Callable[[str], list[str]], index: NeighborIndex, static: StaticVectors | None
    ) -> None:
        self._elmo, self._split, self._index, self._static = elmo, split, index, static
        self.layers = {self.name_of(layer): layer for layer in index.layers}

    def name_of(self, layer: int | str) -> str:
        """The name of a layer for people."""
        return "0, without context" if layer == 0 else f"{layer}, LSTM" if isinstance(layer, int) else layer

    def look_at(self, text: str, word: str, layer: str, k: int = 8) -> WordTables:
        """
        # Parameters

        text
            One sentence per line.
        word
            A word that occurs in them, in any case.
        layer
            The name of the layer of map and neighbours.
        k
            How many neighbours.
        """
        word = in_nfc(word.strip())
        sentences = [self._split(in_nfc(line)) for line in text.splitlines() if line.strip()]
        found = [
            Query(words, position)
            for words in sentences
            for position, each in enumerate(words)
            if each.lower() == word.lower()
        ]
        if not found:
            raise ValueError(f"expected a word of the sentences, got '{word}'")
        # Shape of each: (n_layers, n_words, dim)
        arrays = self._elmo.embed([query.words for query in found], layers="all", progress=False)
        # Shape: (n_layers, n_found, dim)
        vectors = np.stack([array[:, query.position] for array, query in zip(arrays, found, strict=True)], 1)
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        which = self.layers[layer]
        return WordTables(
            self._cosines(found, vectors),
            self._places(found, vectors[which], word, which),
            self._neighbors(found, word, which, k),
        )

    def _cosines(self, found: Sequence[Query], vectors: np.ndarray) -> pd.DataFrame:
        rows = []
        for one in range(len(found)):
            for other in range(one + 1, len(found)):
                cosines = (vectors[:, one] * vectors[:, other]).sum(-1)
                row = {"one": _marked(found[one]), "other": _marked(found[other])}
                rows.append(row | {self.name_of(layer): round(float(c), 2) for layer, c in enumerate(cosines)})
        return pd.DataFrame(rows, columns=["one", "other", *map(self.name_of, range(len(vectors)))])

    def _places(self, found: Sequence[Query], vectors: np.ndarray, word: str, layer: int | str) -> pd.DataFrame:
        rows = self._index.occurrences(word)
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MAX_POINTS), dtype=int))]
        # Shape: (n_points, dim)
        points = np.concatenate([vectors, np.asarray(self._index.vectors[layer][rows], np.float32)])
        centred = points - points.mean(0)
        # The first two principal components. Shape: (n_points, 2)
        places = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
        places = np.pad(places, [(0, 0), (0, 2 - places.shape[1])])
        sentences = [_marked(query) for query in [*found, *map(self._index.at, rows)]]
        source = ["your sentence"] * len(found) + ["index"] * len(rows)
        return pd.DataFrame({"x": places[:, 0], "y": places[:, 1], "source": source, "sentence": sentences})

    def _neighbors(self, found: Sequence[Query], word: str, layer: int | str, k: int) -> pd.DataFrame:
        rows = []
        for query, nearest in zip(found, self._index.search(self._elmo, found, k, layer=layer), strict=True):
            for neighbor in nearest:
                marked = _marked(Query(neighbor.words, neighbor.position))
                rows.append([_marked(query), marked, round(neighbor.similarity, 2)])
        for other, cosine in self._static.nearest(word, k) if self._static else []:
            rows.append(["static vector", other, round(cosine, 2)])
        return pd.DataFrame(rows, columns=["word", "neighbour", "cosine"])


def _marked(query: Query) -> str:
    words = list(query.words)
    words[query.position] = f"[{words[query.position]}]"
    return " ".join(words)
