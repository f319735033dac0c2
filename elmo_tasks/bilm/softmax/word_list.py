"""The vocabulary of the softmax."""

import logging
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from elmo_tasks.bilm.character_ids import BEGIN_OF_SENTENCE, END_OF_SENTENCE
from elmo_tasks.files.lines import numbered_lines

__all__ = ["UNKNOWN_WORD", "WordList", "warn_of_unknown"]

logger = logging.getLogger(__name__)

UNKNOWN_WORD = "<UNK>"

_SPECIAL_WORDS = (BEGIN_OF_SENTENCE, END_OF_SENTENCE, UNKNOWN_WORD)
# bilm-tf ignores this line, which has no row in the softmax.
_MAX_TERM_ID = "!!!MAXTERMID"


class WordList:
    """
    The words that a biLM is trained to predict, numbered by frequency, as a sampled softmax
    requires. A file (bilm-tf's `vocab.txt`) has one word per line: the sentence boundaries `<S>`
    and `</S>`, `<UNK>` for all words that are not in the list, then the most frequent word, and so
    on. The three special words may be on other lines.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._numbers: dict[str, int] = {}
        for line, word in enumerate(words, start=1):
            # A line with a word and its count would be one word, which occurs in no text.
            if word in self._numbers or " " in word or "\t" in word:
                raise ValueError(
                    f"expected one word, and each word once, got {word!r}: line {line}"
                )
            if word != _MAX_TERM_ID:
                self._numbers[word] = len(self._numbers)
        if missing := [word for word in _SPECIAL_WORDS if word not in self._numbers]:
            raise ValueError(
                f"a word list needs {', '.join(_SPECIAL_WORDS)}, but lacks {', '.join(missing)}"
            )
        self.words = tuple(self._numbers)
        self._unknown = self._numbers[UNKNOWN_WORD]

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "WordList":
        """Reads a `vocab.txt`, plain or compressed; a `ValueError` names the file and the line."""
        words = [word for _, word in numbered_lines(path)]
        try:
            return cls(words)
        except ValueError as error:
            raise ValueError(f"{error}: {path}") from None

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, max_words: int | None = None, min_count: int = 1
    ) -> "WordList":
        """
        The most frequent words of a text.

        # Parameters

        counts
            The number of occurrences of each word. Special words are ignored here, because they
            always come first.
        max_words
            The largest size of the list, including the three special words. `None`: no limit.
        min_count
            Words that occur less often are omitted.
        """
        words = [
            word
            for word, count in counts.items()
            if count >= min_count and word not in _SPECIAL_WORDS
        ]
        # Equally frequent words are in alphabetical order, so the list does not depend on the order
        # of the text.
        words.sort(key=lambda word: (-counts[word], word))
        return cls([*_SPECIAL_WORDS, *words][:max_words])

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a `vocab.txt`."""
        Path(path).write_bytes("".join(f"{word}\n" for word in self.words).encode())

    def __len__(self) -> int:
        return len(self.words)

    def indices(self, words: Iterable[str]) -> list[int]:
        """The number of each word, or of `<UNK>` if it is not in the list."""
        get, unknown = self._numbers.get, self._unknown
        return [get(word, unknown) for word in words]


def warn_of_unknown(n_unknown: int, n_words: int) -> None:
    """
    Logs a warning if more than half of the words of a text are not in the list, probably by
    mistake.
    """
    if n_unknown > n_words / 2:
        logger.warning(
            "%d of %d words are not in the vocabulary: they all count as <UNK>", n_unknown, n_words
        )
