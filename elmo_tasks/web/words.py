"""
A word in several sentences: how similar its vectors are, its neighbours, and a map of its
occurrences.
"""

from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd

from elmo_tasks.data import LmText
from elmo_tasks.files.shipped import FIXTURES
from elmo_tasks.paper.neighbors import Neighbor, NeighborIndex, Query, build_index
from elmo_tasks.paper.static_vectors import StaticVectors
from elmo_tasks.text import Tokenizer, in_nfc, words_of_text
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["EXAMPLES", "Words", "shipped_index"]

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
_MAX_FOUND, _MAX_POINTS = 12, 300
_N_NEIGHBORS = 8


class Words:
    """
    The vectors of words in their sentences. `index`, made with the same biLM, is for neighbours and
    maps; its layer `mix` is left out. `static` vectors are for comparison.
    """

    def __init__(
        self, elmo: Elmo, tokenizer: Tokenizer, index: NeighborIndex, static: StaticVectors | None
    ) -> None:
        self._elmo, self._tokenizer, self._index, self._static = elmo, tokenizer, index, static
        top = elmo.n_layers - 1
        self.layers = {
            f"layer {top if layer == 'top' else layer}": layer
            for layer in index.layers
            if layer != "mix"
        }

    def compare(
        self, text: str, word: str, layer: str
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """
        The cosines of the occurrences in all layers, and the neighbours and a map in one layer. The
        text has one sentence per line, and each contains the word, ignoring case.
        """
        found = self._occurrences(text, in_nfc(word).strip())
        arrays = self._elmo.embed([query.words for query in found], layers="all", progress=False)
        # Shape: (n_layers, n_found, dim)
        vectors = np.stack(
            [array[:, query.position] for array, query in zip(arrays, found, strict=True)], 1
        )
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        of_layer = vectors[-1 if self.layers[layer] == "top" else int(self.layers[layer])]
        return (
            self._cosines(found, vectors),
            self._neighbors(found, layer),
            self._map(found, of_layer, layer),
        )

    def _occurrences(self, text: str, word: str) -> list[Query]:
        found = []
        for line in filter(str.strip, text.splitlines()):
            words = words_of_text(line, self._tokenizer)
            places = [
                place for place, other in enumerate(words) if other.casefold() == word.casefold()
            ]
            if not places:
                raise ValueError(
                    f"expected the word {word!r} in each sentence, got {' '.join(words)!r}"
                )
            found += [Query(words, place) for place in places]
        if not 0 < len(found) <= _MAX_FOUND:
            raise ValueError(
                f"expected 1 to {_MAX_FOUND} occurrences of {word!r}, got {len(found)}"
            )
        return found

    def _cosines(self, found: list[Query], vectors: np.ndarray) -> pd.DataFrame:
        # Shape: (n_layers, n_found, n_found)
        cosines = vectors @ vectors.swapaxes(1, 2)
        pairs = list(combinations(range(len(found)), 2))
        columns = {
            f"layer {layer}": [round(float(of[pair]), 3) for pair in pairs]
            for layer, of in enumerate(cosines)
        }
        return pd.DataFrame(
            {"occurrences": [f"{one + 1} and {other + 1}" for one, other in pairs], **columns}
        )

    def _neighbors(self, found: list[Query], layer: str) -> pd.DataFrame:
        """A column for each occurrence, and one for the static vector."""
        many = self._index.search(found, _N_NEIGHBORS, layer=self.layers[layer])
        columns: dict[str, list[str]] = {}
        if self._static is not None:
            nearest = self._static.nearest(found[0].words[found[0].position], _N_NEIGHBORS)
            columns["static vector"] = [other for other, _ in nearest]
        for number, neighbors in enumerate(many, start=1):
            columns[f"occurrence {number}"] = [
                f"{each.similarity:.2f} {_shown(each)}" for each in neighbors
            ]
        return pd.DataFrame(
            {name: pd.Series(column, dtype=str) for name, column in columns.items()}
        ).fillna("")

    def _map(self, found: list[Query], vectors: np.ndarray, layer: str) -> pd.DataFrame:
        """
        The occurrences in the sentences and in the index, by the first two principal components.
        """
        rows = self._index.occurrences(found[0].words[found[0].position])
        # Evenly spaced through the text.
        rows = rows[
            np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MAX_POINTS)).astype(int))
        ]
        points = np.concatenate(
            [vectors, self._index.vectors[self.layers[layer]][rows].astype(np.float32)]
        )
        centered = points - points.mean(0)
        # Shape: (n_points, 2)
        places = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
        x, y = np.pad(places, ((0, 0), (0, 2 - places.shape[1]))).T
        names = [f"occurrence {number}" for number in range(1, len(found) + 1)] + ["index"] * len(
            rows
        )
        sentences = [_shown(query) for query in [*found, *map(self._index.at, rows.tolist())]]
        return pd.DataFrame({"x": x, "y": y, "of": names, "sentence": sentences})


def _shown(query: Query | Neighbor, context: int = 4) -> str:
    words = [
        f"[{word}]" if place == query.position else word for place, word in enumerate(query.words)
    ]
    return " ".join(words[max(0, query.position - context) : query.position + context + 1])


def shipped_index(elmo: Elmo, folder: Path) -> NeighborIndex:
    """
    An index of all layers of the included text, which is small because it is computed at each
    start.
    """
    files = [FIXTURES / "lm" / "dev.txt", Path(__file__).with_name("sentences.txt")]
    return build_index(
        elmo, chain.from_iterable(map(LmText, files)), folder, layers=range(elmo.n_layers)
    )
