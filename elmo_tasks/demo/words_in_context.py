"""A word in several sentences: its vectors, how similar they are, its neighbours, and a map of its occurrences."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from elmo_tasks.analysis import Occurrence, StaticVectors, occurrences_of
from elmo_tasks.demo.projection import Method, projected
from elmo_tasks.demo.texts import Texts
from elmo_tasks.demo.word_indexes import LayerIndex
from elmo_tasks.unicode_text import in_nfc
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["WordsInContext", "layer_name"]

# Each is compared with each other one in each layer: a thousand would be gigabytes of numbers on the page.
_MAX_FOUND = 48
# Points of a map.
_MAX_POINTS = 300
_MAX_NEIGHBORS = 50


@dataclass(frozen=True)
class WordVectors:
    """
    The occurrences of a word in some sentences, with their vectors.

    # Parameters

    found
        At least one for each sentence.
    vectors
        Shape `(n_layers, n_found, dim)`.
    """

    found: list[Occurrence]
    vectors: np.ndarray


@dataclass(frozen=True, kw_only=True)
class WordsInContext:
    """
    What the layers of a biLM know of a word in its sentence. All results are made of what JSON has.

    # Parameters

    elmo
        The biLM.
    texts
        Splits sentences into words.
    indexes
        By their layers, as far as there are any.
    static
        For comparison: vectors that are the same in every sentence.
    """

    elmo: Elmo
    texts: Texts
    indexes: Mapping[int, LayerIndex]
    static: StaticVectors | None = None

    def similarity(self, sentences: list[str], word: str) -> dict[str, Any]:
        """
        # Parameters

        sentences
            One or more.
        word
            A word that is in each of them, in any case.

        # Returns

        `Dict[str, Any]`
            `occurrences`, each with the `words` of its sentence and the `position` of the word; and `layers`, each with
            its `layer`, `name`, the `vectors` of all occurrences, of shape `(n_found, dim)`, and their `similarity`,
            the cosines, of shape `(n_found, n_found)`.

        # Raises

        `ValueError`
            If a sentence is refused (see `Texts`), or the word is not in one, or too often in all together.
        """
        own = self._vectors(sentences, in_nfc(word))
        layers = []
        for layer, vectors in enumerate(own.vectors):
            unit = _of_length_1(vectors)
            # Shape: (n_found, n_found)
            similarity = np.clip(unit @ unit.T, -1, 1)
            layers.append({**self._named(layer), "vectors": vectors.tolist(), "similarity": similarity.tolist()})
        return {"occurrences": [found._asdict() for found in own.found], "layers": layers}

    def neighbors(self, sentences: list[str], word: str, k: int = 8) -> dict[str, Any]:
        """
        # Parameters

        sentences, word
            See `similarity`.
        k
            How many neighbours of each occurrence.

        # Returns

        `Dict[str, Any]`
            `occurrences`; `layers`, those with an index, each with the `neighbors` of each occurrence (`words`,
            `position`, `similarity`), the nearest first; and `static`, the neighbours of the static vector (`word`,
            `similarity`), `None` if there is no such vector.

        # Raises

        `ValueError`
            See `similarity`; and if `k` is out of its range.
        """
        if type(k) is not int or not 1 <= k <= _MAX_NEIGHBORS:
            raise ValueError(f"k must be a whole number from 1 to {_MAX_NEIGHBORS}, but is {k!r:.100}")
        word = in_nfc(word)
        own = self._vectors(sentences, word)
        layers = []
        for layer, of_layer in self.indexes.items():
            search = partial(of_layer.index.search, k=k, layer=of_layer.name)
            of_each = [
                [neighbor._asdict() for neighbor in search(vector, without=found.words)]
                for found, vector in zip(own.found, own.vectors[layer], strict=True)
            ]
            layers.append({**self._named(layer), "neighbors": of_each})
        nearest = None if self.static is None else self.static.nearest(word, k)
        static = None if nearest is None else [{"word": other, "similarity": cosine} for other, cosine in nearest]
        return {"occurrences": [found._asdict() for found in own.found], "layers": layers, "static": static}

    def map(self, sentences: list[str], word: str, method: Method = "pca") -> dict[str, Any]:
        """
        # Parameters

        sentences, word
            See `similarity`.
        method
            See `projected`.

        # Returns

        `Dict[str, Any]`
            `layers`, those with an index, each with its `points`: first the occurrences in the sentences, with their
            number from 1 as `own`, and then those in the index. A point has `words`, `position`, `x` and `y`. `n_all`
            is how many occurrences the index has.

        # Raises

        `ValueError`
            See `similarity` and `projected`.
        """
        word = in_nfc(word)
        own = self._vectors(sentences, word)
        layers = []
        for layer, of_layer in self.indexes.items():
            others = occurrences_of(of_layer.index, word, _MAX_POINTS, of_layer.name)
            # Shape: (n_points, dim)
            vectors = np.concatenate([_of_length_1(own.vectors[layer]), others.vectors])
            places = projected(vectors, method).tolist()
            numbers = [*range(1, len(own.found) + 1), *(None for _ in others.found)]
            points = [
                {**found._asdict(), "own": number, "x": x, "y": y}
                for found, number, (x, y) in zip([*own.found, *others.found], numbers, places, strict=True)
            ]
            layers.append({**self._named(layer), "points": points, "n_all": others.n_all})
        return {"layers": layers}

    def _vectors(self, sentences: list[str], word: str) -> WordVectors:
        split = self.texts.sentences(sentences)
        places = _places(split, word)
        found: list[Occurrence] = []
        vectors = []
        # Of each sentence shape: (n_layers, n_words, dim)
        layers = self.elmo.embed(split, layers="all", progress=False)
        for words, of_word, of_sentence in zip(split, places, layers, strict=True):
            found += [Occurrence(words, place) for place in of_word]
            vectors.append(of_sentence[:, of_word])
        return WordVectors(found, np.concatenate(vectors, 1))

    def _named(self, layer: int) -> dict[str, Any]:
        return {"layer": layer, "name": layer_name(layer, self.elmo.n_layers)}


def layer_name(layer: int, n_layers: int) -> str:
    """The name of a layer for people."""
    if layer == 0:
        return "layer 0, context-insensitive"
    kind = {1: "lowest", n_layers - 1: "highest"}.get(layer)
    return f"layer {layer}" if n_layers < 3 or kind is None else f"layer {layer}, {kind} LSTM"


def _places(sentences: list[list[str]], word: object) -> list[list[int]]:
    """The places of the word in each sentence, whatever its case."""
    if not isinstance(word, str) or len(word.split()) != 1:
        raise ValueError(f"the word must be one of the sentences, a single one, but is {word!r:.100}")
    word = word.strip()
    found = []
    for number, words in enumerate(sentences, start=1):
        places = [place for place, other in enumerate(words) if other.casefold() == word.casefold()]
        if not places:
            raise ValueError(
                f"the word must be in each sentence, but {word!r:.60} is not in sentence {number}, whose words are: "
                f"{' '.join(words):.300}"
            )
        found.append(places)
    n_found = sum(map(len, found))
    if n_found > _MAX_FOUND:
        raise ValueError(
            f"the word must occur at most {_MAX_FOUND} times in all sentences together, but {word!r:.60} occurs "
            f"{n_found:,} times: shorten them"
        )
    return found


def _of_length_1(vectors: np.ndarray) -> np.ndarray:
    """Shape `(n, dim)`, as it is given."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: np.ndarray = vectors / np.where(lengths > 0, lengths, 1)
    return unit
