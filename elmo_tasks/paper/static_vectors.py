"""Static word vectors, such as GloVe's, which are the same in every sentence."""

from os import PathLike

import numpy as np

from elmo_tasks.files.lines import numbered_lines

__all__ = ["StaticVectors", "unit"]


class StaticVectors:
    """
    The words and vectors of a file in GloVe's format, plain, `.gz` or `.xz`: one word and its
    numbers per line.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._words: list[str] = []
        rows: list[np.ndarray] = []
        for number, line in numbered_lines(path):
            line = line.rstrip()
            if not rows:
                dim = line.count(" ")
            # From the right, because some of GloVe's words contain spaces.
            word, *numbers = line.rsplit(" ", dim)
            try:
                rows.append(np.array(numbers, np.float32))
            except ValueError as error:
                raise ValueError(
                    f"expected a word and its numbers ({error}): {path}, line {number}"
                ) from None
            self._words.append(word)
        self._rows = {word: row for row, word in enumerate(self._words)}
        # Shape: (n_words, dim)
        self._vectors = unit(np.stack(rows))

    def __len__(self) -> int:
        return len(self._words)

    def nearest(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """
        The words with the highest cosines, except `word`, which is also looked up in lower case;
        none if unknown.
        """
        row = self._rows.get(word, self._rows.get(word.lower()))
        if row is None:
            return []
        # Shape: (n_words,)
        cosines = self._vectors @ self._vectors[row]
        cosines[row] = -np.inf
        n_neighbors = min(k, len(cosines) - 1)
        best = np.argsort(-cosines, kind="stable")[:n_neighbors]
        return [(self._words[index], float(cosines[index])) for index in best]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scales vectors of shape `(..., dim)` to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: np.ndarray = vectors / np.where(lengths > 0, lengths, 1)
    return scaled
