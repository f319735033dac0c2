"""Senses as the mean vectors of the words that have them."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

import numpy as np

from elmo_tasks.analysis.wsd_corpus import WsdInstance, WsdSentence
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["SenseVectors", "instance_vectors"]

# Of squared distances, as a part of the squared length: what rounding makes of the same word in two batches is smaller.
_AS_NEAR = 1e-6


class SenseVectors:
    """
    A vector for each sense that training data has: the mean over the words that have it, in each layer of the biLM
    (section 5.3 of the paper). A word of several senses counts for each of them. Only sums and counts are kept.

    # Parameters

    senses
        All that can be added, each once or more often.
    n_layers, dim
        Of the biLM.
    distance
        The measure of the nearest sense. The paper does not say; context2vec (Melamud et al. 2016), whose protocol
        it follows, takes the cosine.

    # Raises

    `ValueError`
        If the distance is neither.
    """

    def __init__(
        self,
        senses: Iterable[str],
        *,
        n_layers: int,
        dim: int,
        distance: Literal["cosine", "euclidean"] = "cosine",
    ) -> None:
        if distance not in ("cosine", "euclidean"):
            raise ValueError(f"distance must be 'cosine' or 'euclidean', but is {distance!r}")
        self._rows = {sense: row for row, sense in enumerate(dict.fromkeys(senses))}
        self._names = list(self._rows)
        self._distance = distance
        self._sums = np.zeros((len(self._rows), n_layers, dim))
        self._counts = np.zeros(len(self._rows), np.int64)
        # The senses that a lemma had, in the order in which they came.
        self._candidates: dict[tuple[str, str], dict[int, None]] = {}

    def __len__(self) -> int:
        """How many senses have a vector."""
        return int((self._counts > 0).sum())

    @property
    def most_frequent(self) -> dict[tuple[str, str], str]:
        """The most frequent sense of each lemma and part of speech, the first to come of those that are as frequent."""
        return {word: self._names[max(rows, key=self._counts.__getitem__)] for word, rows in self._candidates.items()}

    def add(self, instance: WsdInstance, vector: np.ndarray) -> None:
        """
        # Parameters

        instance
            A word of the training data.
        vector
            Shape `(n_layers, dim)`.
        """
        for sense in instance.senses:
            row = self._rows[sense]
            self._sums[row] += vector
            self._counts[row] += 1
            self._candidates.setdefault((instance.lemma, instance.pos), {})[row] = None

    def nearest(self, instance: WsdInstance, vector: np.ndarray) -> list[str] | None:
        """
        # Parameters

        instance
            Any word; its own senses are not looked at.
        vector
            Shape `(n_layers, dim)`.

        # Returns

        `List[str]`
            For each layer, and then for the mean of the layers, the nearest of the senses that the lemma had in
            training as the same part of speech; `None` if it had no sense there. Of those that are as near but for
            rounding, as in the context-insensitive layer all senses of a word that has one form, the one that came
            first in training.
        """
        known = self._candidates.get((instance.lemma, instance.pos))
        if known is None:
            return None
        rows = list(known)
        # Shape: (n_senses, n_layers + 1, dim)
        means = _with_mean(self._sums[rows] / self._counts[rows, None, None])
        # Shape: (n_layers + 1, dim)
        target = _with_mean(vector.astype(np.float64))
        if self._distance == "cosine":
            means, target = _unit(means), _unit(target)
        # Shape: (n_senses, n_layers + 1)
        distances = np.square(means - target).sum(-1)
        are_nearest = distances <= distances.min(0) + _AS_NEAR * np.square(target).sum(-1)
        return [self._names[rows[first]] for first in are_nearest.argmax(0)]


def _with_mean(vectors: np.ndarray) -> np.ndarray:
    """Shape `(..., n_layers, dim)` to `(..., n_layers + 1, dim)`."""
    mixed: np.ndarray = np.concatenate([vectors, vectors.mean(-2, keepdims=True)], -2)
    return mixed


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths: np.ndarray = np.linalg.norm(vectors, axis=-1, keepdims=True)
    # A vector of zeros stays one, at the same distance from all others.
    return vectors / np.where(lengths > 0, lengths, 1)


def instance_vectors(
    elmo: Elmo, sentences: Iterable[WsdSentence], *, batch_tokens: int = 4096
) -> Iterator[tuple[WsdInstance, np.ndarray]]:
    """
    # Parameters

    elmo
        Of any biLM.
    sentences
        However many: they are read as they are needed.
    batch_tokens
        See `Elmo.embed_iter`.

    # Returns

    `Iterator[Tuple[WsdInstance, np.ndarray]]`
        Each instance with the mean over its words, of shape `(n_layers, dim)`, in the order of the sentences.
    """
    waiting: deque[list[WsdInstance]] = deque()

    def words() -> Iterator[list[str]]:
        # A sentence is embedded by itself, so that those without instances are not needed.
        for sentence in sentences:
            if sentence.instances:
                waiting.append(sentence.instances)
                yield sentence.words

    def vectors_of(layers: np.ndarray) -> Iterator[tuple[WsdInstance, np.ndarray]]:
        for instance in waiting.popleft():
            yield instance, layers[:, instance.start : instance.end].mean(1)

    embedded = elmo.embed_iter(words(), layers="all", batch_tokens=batch_tokens, progress=False)
    return chain.from_iterable(map(vectors_of, embedded))
