"""
A word in several sentences: how similar its vectors are, its neighbours, and a map of its
occurrences.
"""

from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from elmo_tasks.data import LmText
from elmo_tasks.files.shipped import FIXTURES
from elmo_tasks.paper.neighbors import Neighbor, NeighborIndex, Query, build_index, marked_words
from elmo_tasks.paper.static_vectors import StaticVectors
from elmo_tasks.text import Tokenizer, in_nfc, words_of_text
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.layers import Layers

__all__ = ["EXAMPLES", "Comparison", "WordComparer", "shipped_index"]

EXAMPLES: dict[str, list[list[str]]] = {
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
"""Sentences and a word that has different senses in them, by spaCy's language code."""

# The most occurrences, which are compared in pairs, and the most points of a map from the index.
_MAX_OCCURRENCES = 12
_MAX_POINTS = 300
_N_NEIGHBORS = 8


class Comparison(NamedTuple):
    """
    The tables of the page: the cosines of the occurrences of a word, their neighbours, and the
    points of a map.
    """

    cosines: pd.DataFrame
    neighbors: pd.DataFrame
    points: pd.DataFrame


class WordComparer:
    """
    Compares the vectors of a word in its sentences. `index`, made with the same biLM, is for
    neighbours and maps; its layer `mix` is left out. `static` vectors are for comparison.
    """

    def __init__(
        self, elmo: Elmo, tokenizer: Tokenizer, index: NeighborIndex, static: StaticVectors | None
    ) -> None:
        self._elmo = elmo
        self._tokenizer = tokenizer
        self._index = index
        self._static = static
        self.layers: dict[str, Layers] = {}
        for layer in index.layers:
            if layer != "mix":
                number = elmo.n_layers - 1 if layer == "top" else layer
                self.layers[f"layer {number}"] = layer

    def compare(self, text: str, word: str, layer: str) -> Comparison:
        """
        The cosines of the occurrences in all layers, and the neighbours and a map in one layer. The
        text has one sentence per line, and each contains the word, ignoring case.
        """
        occurrences = self._occurrences(text, in_nfc(word).strip())
        sentences = [occurrence.words for occurrence in occurrences]
        arrays = self._elmo.embed(sentences, layers="all", progress=False)
        pairs = zip(arrays, occurrences, strict=True)
        # Shape: (n_layers, n_occurrences, dim)
        vectors = np.stack([array[:, query.position] for array, query in pairs], axis=1)
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        layer_of_index = self.layers[layer]
        number = -1 if layer_of_index == "top" else int(layer_of_index)
        return Comparison(
            cosines=_cosines(vectors),
            neighbors=self._neighbors(occurrences, layer_of_index),
            points=self._points(occurrences, vectors[number], layer_of_index),
        )

    def _occurrences(self, text: str, word: str) -> list[Query]:
        occurrences = []
        for line in text.splitlines():
            if not line.strip():
                continue
            words = words_of_text(line, self._tokenizer)
            positions = _positions_of(word, words)
            if not positions:
                raise ValueError(
                    f"expected the word {word!r} in each sentence, got {' '.join(words)!r}"
                )
            occurrences += [Query(words, position) for position in positions]
        if not 0 < len(occurrences) <= _MAX_OCCURRENCES:
            expected = f"1 to {_MAX_OCCURRENCES} occurrences of {word!r}"
            raise ValueError(f"expected {expected}, got {len(occurrences)}")
        return occurrences

    def _neighbors(self, occurrences: list[Query], layer: Layers) -> pd.DataFrame:
        """A column for each occurrence, and one for the static vector."""
        columns: dict[str, list[str]] = {}
        if self._static is not None:
            nearest = self._static.nearest(occurrences[0].word, _N_NEIGHBORS)
            columns["static vector"] = [word for word, _ in nearest]
        searched = self._index.search(occurrences, _N_NEIGHBORS, layer=layer)
        for number, neighbors in enumerate(searched, start=1):
            cells = [f"{neighbor.similarity:.2f} {_shown(neighbor)}" for neighbor in neighbors]
            columns[f"occurrence {number}"] = cells
        # Columns of different lengths.
        series = {name: pd.Series(cells, dtype=str) for name, cells in columns.items()}
        return pd.DataFrame(series).fillna("")

    def _points(self, occurrences: list[Query], vectors: np.ndarray, layer: Layers) -> pd.DataFrame:
        """
        The occurrences in the sentences and in the index, by the first two principal components.
        """
        rows = self._index.occurrences(occurrences[0].word)
        # Evenly spaced through the text.
        n_rows = min(len(rows), _MAX_POINTS)
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, n_rows).astype(int))]
        vectors_of_index = self._index.vectors[layer][rows].astype(np.float32)
        points = _projected(np.concatenate([vectors, vectors_of_index]))
        names = [f"occurrence {number}" for number in range(1, len(occurrences) + 1)]
        names += ["index"] * len(rows)
        sentences = [_shown(query) for query in occurrences]
        sentences += [_shown(self._index.at(row)) for row in rows.tolist()]
        columns = {"x": points[:, 0], "y": points[:, 1], "of": names, "sentence": sentences}
        return pd.DataFrame(columns)


def _positions_of(word: str, words: list[str]) -> list[int]:
    folded = word.casefold()
    return [position for position, other in enumerate(words) if other.casefold() == folded]


def _cosines(vectors: np.ndarray) -> pd.DataFrame:
    """The cosines of each pair of vectors of length 1, in a column for each layer."""
    # Shape: (n_layers, n_occurrences, n_occurrences)
    cosines = vectors @ vectors.swapaxes(1, 2)
    pairs = list(combinations(range(vectors.shape[1]), 2))
    columns: dict[str, list[Any]] = {}
    columns["occurrences"] = [f"{one + 1} and {other + 1}" for one, other in pairs]
    for layer, cosines_of_layer in enumerate(cosines):
        columns[f"layer {layer}"] = [round(float(cosines_of_layer[pair]), 3) for pair in pairs]
    return pd.DataFrame(columns)


def _projected(vectors: np.ndarray) -> np.ndarray:
    """Vectors in the plane of their first two principal components, of shape `(n_vectors, 2)`."""
    centered = vectors - vectors.mean(0)
    _, _, components = np.linalg.svd(centered, full_matrices=False)
    points = centered @ components[:2].T
    # A single vector has only one component.
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def _shown(query: Query | Neighbor, context: int = 4) -> str:
    """The word in brackets, with some of the words around it."""
    words = marked_words(query)
    return " ".join(words[max(0, query.position - context) : query.position + context + 1])


def shipped_index(elmo: Elmo, folder: Path) -> NeighborIndex:
    """
    An index of all layers of the included text, which is small because it is computed at each
    start.
    """
    files = [FIXTURES / "lm" / "dev.txt", Path(__file__).with_name("sentences.txt")]
    sentences = chain.from_iterable(map(LmText, files))
    return build_index(elmo, sentences, folder, layers=range(elmo.n_layers))
