"""Files of word vectors that AllenNLP reads."""

from collections.abc import Iterator
from typing import Any, TextIO

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.files.text_lines import MAX_LINE_BYTES

__all__ = ["limit_lines_of_word_vectors"]


def limit_lines_of_word_vectors(embedding: Module) -> None:
    """
    Symptom: a compressed file of a few kilobytes that is one line of gigabytes ends a training with `MemoryError`.

    Cause: `EmbeddingsTextFile` reads lines of any length.
    """

    def get(self: Any) -> Any:
        return self.__dict__["_handle"]

    def set_limited(self: Any, handle: TextIO) -> None:
        self.__dict__["_handle"] = _LimitedLines(handle, self.uri)

    embedding.EmbeddingsTextFile._handle = property(get, set_limited)


class _LimitedLines(Iterator[str]):
    """The lines of an open file, which end with an error at one that is too long."""

    def __init__(self, file: TextIO, name: str) -> None:
        self._file, self._name, self._n_lines = file, name, 0
        self.close = file.close

    def __next__(self) -> str:
        line = self._file.readline(MAX_LINE_BYTES)
        self._n_lines += 1
        if len(line) == MAX_LINE_BYTES:
            raise ValueError(
                f"{self._name}, line {self._n_lines}: a line must have a word and its vector, but is "
                f"{MAX_LINE_BYTES // 2**20} MiB long or longer"
            )
        if not line:
            raise StopIteration
        return line
