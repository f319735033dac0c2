"""Counts of the words that are too long for a biLM, which cuts them."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from elmo_tasks.bilm.characters import leave_cut_words_to_caller
from elmo_tasks.bilm.word_rows import BYTES, WordRows

__all__ = ["CutWords"]


@dataclass
class CutWords:
    """
    How many words of a text are cut, for one line at the end of a job or a command. The warning that one word is cut
    is then not given, since the line says more.

    # Parameters

    rows
        How the biLM reads words; by default the public scheme.
    n_words
        How many words were looked at.
    n_cut
        How many of them are cut.
    example
        The first of those.
    """

    rows: WordRows = field(default=BYTES, repr=False)
    n_words: int = 0
    n_cut: int = 0
    example: str | None = None

    def add(self, words: Collection[str]) -> None:
        """Counts words, before they are embedded."""
        self.n_words += len(words)
        for word in filter(self.rows.is_cut, words):
            self._found(word, 1)

    def add_counts(self, counts: Counter[str]) -> None:
        """As `add`, for words with their frequencies."""
        self.n_words += counts.total()
        for word in filter(self.rows.is_cut, counts):
            self._found(word, counts[word])

    def merge(self, other: "CutWords") -> None:
        """Adds what was counted elsewhere."""
        self.n_words += other.n_words
        if other.example is not None:
            self._found(other.example, other.n_cut)

    def _found(self, word: str, count: int) -> None:
        if self.example is None:
            self.example = word
            leave_cut_words_to_caller()
        self.n_cut += count

    def message(self) -> str | None:
        """One line; `None` if no word is cut."""
        if self.example is None:
            return None
        return (
            f"{self.n_cut:,} of {self.n_words:,} words ({self.n_cut / self.n_words:.2%}) are longer than "
            f"{self.rows.room}, and are cut there: those that agree so far have one vector. The first is "
            f"{self.example[:60]!r}"
        )
