"""The vocabulary of the softmax."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from elmo_tasks.bilm.characters import BEGIN_OF_SENTENCE, END_OF_SENTENCE
from elmo_tasks.files.text_lines import byte_lines, decoded

__all__ = ["NO_WORD", "UNKNOWN_WORD", "WordList"]

UNKNOWN_WORD = "<UNK>"

_SPECIAL_WORDS = (BEGIN_OF_SENTENCE, END_OF_SENTENCE, UNKNOWN_WORD)
# bilm-tf ignores this line, which has no row in the softmax.
NO_WORD = "!!!MAXTERMID"


class WordList:
    """
    The words that a biLM is trained to predict, numbered by frequency as a sampled softmax wants them. A file
    (bilm-tf's `vocab.txt`) has one on each line: the sentence boundaries `<S>` and `</S>`, `<UNK>` for all words that
    are not in the list, then the most frequent word, and so on.

    # Parameters

    words
        The words in this order. The three special ones may stand elsewhere.

    # Raises

    `ValueError`
        If a special word is missing, a word occurs twice, is empty, or cannot be a line of UTF-8; the message names the
        lines of the file with these words.
    """

    def __init__(self, words: Iterable[str]) -> None:
        lines = list(words)
        self._numbers: dict[str, int] = {}
        for line, word in enumerate(lines, 1):
            if word == NO_WORD:
                continue
            _check_word(word, line)
            if word in self._numbers:
                raise ValueError(
                    f"line {line}: a word must occur once, but {word!r} is on line {lines.index(word) + 1} too: delete "
                    "one of them"
                )
            self._numbers[word] = len(self._numbers)
        if missing := [word for word in _SPECIAL_WORDS if word not in self._numbers]:
            raise ValueError(
                f"a word list must hold {', '.join(_SPECIAL_WORDS)}, but {', '.join(missing)} is missing: add a line "
                "with each at the beginning, before a biLM is trained with it"
            )
        self.words = tuple(self._numbers)
        self._unknown = self._numbers[UNKNOWN_WORD]

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "WordList":
        """
        Reads a `vocab.txt`, plain or compressed (`.gz`, `.xz`).

        # Raises

        `ValueError`
            If the file is not a word list, with its name and the line; `OSError` if it cannot be opened.
        """
        # A word may contain `\r` and the line separators of Unicode.
        words = [decoded(line, path, number) for number, line in byte_lines(path)]
        try:
            return cls(words)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, max_words: int | None = None, min_count: int = 1) -> "WordList":
        """
        The most frequent words of a text.

        # Parameters

        counts
            The number of occurrences of each word. Those of the special words are ignored: these come first.
        max_words
            The largest size of the list, including the three special words. `None`: no limit.
        min_count
            Words that occur less often are omitted.

        # Raises

        `ValueError`
            If `max_words` leaves no room for the special words, or `min_count` is less than 1.
        """
        if max_words is not None and max_words < len(_SPECIAL_WORDS):
            raise ValueError(
                f"max_words must be at least {len(_SPECIAL_WORDS)}, the number of special words, but is {max_words}"
            )
        if min_count < 1:
            raise ValueError(f"min_count must be at least 1, but is {min_count}")
        words = [word for word, count in counts.items() if count >= min_count and word not in _SPECIAL_WORDS]
        # Equally frequent words in alphabetical order: the list does not depend on the order of the text.
        words.sort(key=lambda word: (-counts[word], word))
        return cls([*_SPECIAL_WORDS, *words][:max_words])

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a `vocab.txt`."""
        Path(path).write_bytes("".join(f"{word}\n" for word in self.words).encode())

    def __len__(self) -> int:
        return len(self.words)

    def index(self, word: str) -> int:
        """The number of a word: that of `<UNK>` if it is not in the list."""
        return self._numbers.get(word, self._unknown)

    def indices(self, words: Iterable[str]) -> list[int]:
        """The number of each word."""
        get, unknown = self._numbers.get, self._unknown
        return [get(word, unknown) for word in words]


def _check_word(word: str, line: int) -> None:
    if not word:
        raise ValueError(f"line {line}: a word must not be empty: delete the line")
    if "\n" in word or word.endswith("\r"):
        raise ValueError(f"line {line}: a word must not hold the end of a line, but is {word!r}")
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"line {line}: a word must be Unicode, but is {word!r} ({error.reason})") from None
