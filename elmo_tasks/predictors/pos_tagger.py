"""Parts of speech by the classifier that ships."""

import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmo_tasks.shipped import PRETRAINED
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["PosTagger"]

_SHIPPED = PRETRAINED / "pos-open" / "tagger.npz"
# What NumPy and the zip module say of a file that is not as it was written.
_DAMAGED = (
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OverflowError,
    RuntimeError,
    MemoryError,
    NotImplementedError,
    SyntaxError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class PosTagger:
    """
    The universal part of speech of each word of an English sentence, by a linear classifier on one layer of the biLM
    `small-open` (section 5.3 of the paper). `fixtures/make_pos_tagger.py` takes it out of an archive of
    `training_configs/pos_layer.jsonnet`.

    # Parameters

    path : `Union[str, Path]`
        By default the classifier that ships; a file of NumPy's with `weight`, of shape `(n_tags, dim)`, `bias`, of
        shape `(n_tags,)`, the `tags`, and the number of the `layer`.

    # Raises

    `ValueError`
        If the file is damaged, or another.
    `OSError`
        If it cannot be read.
    """

    def __init__(self, path: str | Path = _SHIPPED) -> None:
        try:
            self._read(Path(path))
        except _DAMAGED as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"{path} must be a tagger as fixtures/make_pos_tagger.py writes it, but is damaged or another file "
                f"({reason}): install elmo_tasks again if it is the one that ships"
            ) from error
        self._elmo = Elmo.from_pretrained("small-open")

    def _read(self, path: Path) -> None:
        # The zip file's own reader, which compares checksums; `np.load` takes a file of one array too.
        with open(path, "rb") as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as arrays:
            self._weight, self._bias = arrays["weight"], arrays["bias"]
            self._tags: list[str] = arrays["tags"].tolist()
            self._layer = int(arrays["layer"])
        n_tags = len(self._tags)
        if self._weight.ndim != 2 or len(self._weight) != n_tags or self._bias.shape != (n_tags,) or not n_tags:
            raise ValueError(
                f"{n_tags} tags with weights of the shape {self._weight.shape} and biases of {self._bias.shape}"
            )

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
