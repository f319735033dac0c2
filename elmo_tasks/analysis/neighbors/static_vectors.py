"""Static word vectors, which are the same in every sentence, as GloVe's."""

from os import PathLike

import numpy as np

from elmo_tasks.files.text_lines import byte_lines

__all__ = ["StaticVectors"]


class StaticVectors:
    """
    # Parameters

    words
        The vocabulary.
    vectors
        Shape `(n_words, dim)`.
    """

    def __init__(self, words: list[str], vectors: np.ndarray) -> None:
        self._words = words
        self._rows = {word: row for row, word in enumerate(words)}
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        self._vectors = vectors / np.where(lengths > 0, lengths, 1)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "StaticVectors":
        """
        # Parameters

        path
            GloVe's form, plain, `.gz` or `.xz`: in each line a word and as many numbers as in the first.

        # Raises

        `FileNotFoundError`
            If there is no such file.
        `ValueError`
            If a line is not as it should be; the message names file and line.
        """
        words: list[str] = []
        rows: list[np.ndarray] = []
        for number, line in byte_lines(path):
            # Some of GloVe's words have spaces in them.
            columns = line.rstrip().rsplit(b" ", len(rows[0]) if rows else line.rstrip().count(b" "))
            try:
                row = np.array(columns[1:], np.float32)
                words.append(columns[0].decode())
            except ValueError:
                row = np.zeros(0, np.float32)
            if len(row) < 2 or (rows and len(row) != len(rows[0])) or not np.isfinite(row).all():
                raise ValueError(
                    f"{path}, line {number}: a line must have a word and {len(rows[0]) if rows else 'its'} "
                    f"numbers, finite ones, with spaces between them, but is {line!r:.80}"
                )
            rows.append(row)
        if not rows:
            raise ValueError(f"{path} must hold at least one vector, but is empty")
        return cls(words, np.stack(rows))

    def nearest(self, word: str, k: int = 10) -> list[tuple[str, float]] | None:
        """
        # Parameters

        word
            Looked up as it is, and in lower case if it is not there.
        k
            How many neighbours.

        # Returns

        `List[Tuple[str, float]]`
            The words with the highest cosines, without the word itself; `None` if the word has no vector.
        """
        row = self._rows.get(word, self._rows.get(word.lower()))
        if row is None:
            return None
        # Shape: (n_words,)
        cosines = self._vectors @ self._vectors[row]
        cosines[row] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(k, len(cosines) - 1)]
        return [(self._words[index], float(cosines[index])) for index in best]
