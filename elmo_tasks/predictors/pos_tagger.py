"""Parts of speech by the classifier that ships."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmo_tasks.shipped import PRETRAINED
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["PosTagger"]

_SHIPPED = PRETRAINED / "pos-open" / "tagger.npz"


class PosTagger:
    """
    The universal part of speech of each word of an English sentence, by a linear classifier on one layer of the biLM
    `small-open` (section 5.3 of the paper). `fixtures/make_pos_tagger.py` takes it out of an archive of
    `training_configs/pos_layer.jsonnet`.

    # Parameters

    path : `Union[str, Path]`
        By default the classifier that ships; a file of NumPy's with `weight`, of shape `(n_tags, dim)`, `bias`, of
        shape `(n_tags,)`, the `tags`, and the number of the `layer`.
    """

    def __init__(self, path: str | Path = _SHIPPED) -> None:
        with np.load(path) as file:
            self._weight, self._bias = file["weight"], file["bias"]
            self._tags: list[str] = file["tags"].tolist()
            self._layer = int(file["layer"])
        self._elmo = Elmo.from_pretrained("small-open")

    def __call__(self, words: Sequence[str]) -> list[str]:
        """
        # Returns

        `List[str]`
            A tag for each word: `NOUN`, `VERB`, `AUX` and so on.
        """
        # Shape: (n_words, dim)
        vectors = self._elmo.embed([list(words)], layers=self._layer, progress=False)[0]
        # Shape: (n_words, n_tags)
        scores = vectors @ self._weight.T + self._bias
        return [self._tags[index] for index in scores.argmax(-1)]
