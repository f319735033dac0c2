"""
From text to words. spaCy, whose rules need no model, is imported on first use. Words that are given
as a list are used as they are.
"""

import os
import re
import string
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from elmo_tasks.files.extras import needs
from elmo_tasks.text.normal import first_stretch, in_nfc, origins

__all__ = [
    "BOUNDARIES",
    "TREEBANK_WORDS",
    "Sentence",
    "Tokenizer",
    "Word",
    "as_words",
    "located_words",
    "locations",
    "pipeline_of",
    "tokens_of_text",
    "words_of",
    "words_of_text",
]

Tokenizer = str | Callable[[str], Sequence[str]]
"""
spaCy's code of a language with rules for it (`"de"`; `"xx"` for any), `"whitespace"`, or a
function.
"""
Sentence = str | Sequence[str]
"""A sentence as a string, or as a list of its words."""

BOUNDARIES = frozenset(["<S>", "</S>"])
"""The boundaries that a biLM adds to each sentence."""

TREEBANK_WORDS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}
"""
The Penn Treebank's escaped words, and their form in ordinary text, which biLMs are trained on.
"""

# Words in a tokenizer's cache, about 20 MB. With spaCy's default of 10,000, most of the time goes
# into uncached words. (A memory zone per text would drop the cache after each text, which takes ten
# times as long.)
_CACHED_WORDS = 200_000
# A pipeline keeps each distinct word; after this many, about 150 MB, it is replaced by a new one.
_MAX_DISTINCT_WORDS = 300_000

# spaCy's rules remove signs from a stretch without white space one by one, and search the rest
# after each: the time grows with the square of its length. So a run of signs is cut after 100
# characters, and any other stretch after 500, or after a full stop or comma of East Asian scripts
# in its second half.
_MAX_SIGNS = 100
_OVERLONG = re.compile(
    rf"[^\w\s]{{{_MAX_SIGNS}}}(?=[^\w\s])"
    r"|(?=\S{501})(?:\S{250,499}[。！？，、；：]|\S{500})"
)
# A longer call would keep the interpreter, and so all threads, waiting.
_MAX_CHARACTERS = 4000
_CHARACTERS = rf".{{1,{_MAX_CHARACTERS}}}"
# The part of a text for one call ends before a line, otherwise before a word, otherwise anywhere.
_PART = re.compile(
    rf"{_CHARACTERS}(?:\Z|(?<=\n)(?=\S))|{_CHARACTERS}(?<=\s)(?=\S)|{_CHARACTERS}", re.DOTALL
)

_pipelines: dict[str, Any] = {}
lock = threading.Lock()
"""
Held while a shared pipeline is used: its tokenizer and its vocabulary may be used by one thread at
a time.
"""


class Word(NamedTuple):
    """
    A word of a text, normalised, and the offsets of its first character and of the one after its
    last.
    """

    text: str
    start: int
    end: int


def as_words(words: Any) -> list[str]:
    """
    The words of a sentence from a user: strings that are neither white space nor boundaries.
    Anything else is an error.
    """
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise ValueError(f"expected a list of words, got {words!r:.60}")
    checked = list(words)
    for word in checked:
        if not isinstance(word, str) or not word.strip(string.whitespace) or word in BOUNDARIES:
            raise ValueError(f"expected a list of words, got {word!r:.60} in {words!r:.200}")
    return checked


def words_of(sentence: Sentence, tokenizer: Tokenizer | None = None) -> list[str]:
    """The words of a sentence: see `words_of_text` for a string."""
    if isinstance(sentence, str):
        return as_words(words_of_text(sentence, tokenizer or "en"))
    return as_words(sentence)


def words_of_text(text: str, tokenizer: Tokenizer = "en") -> list[str]:
    """The words of a text in NFC, without white space."""
    return [token for token in tokens_of_text(in_nfc(text), tokenizer) if not token.isspace()]


def tokens_of_text(text: str, tokenizer: Tokenizer) -> list[str]:
    """
    The tokens of a text in NFC, in a time proportional to its length. spaCy also has tokens of
    white space.
    """
    if tokenizer == "whitespace":
        return text.split()
    if not isinstance(tokenizer, str):
        return as_words(tokenizer(text))
    tokens: list[str] = []
    for part in _independent_parts(text):
        with lock:
            tokens += [token.text for token in pipeline_of(tokenizer).tokenizer(part)]
    return tokens


def _independent_parts(text: str) -> list[str]:
    """The parts of a text that are split into words independently."""
    search_start = first_stretch(text, _MAX_SIGNS)
    if search_start == len(text) <= _MAX_CHARACTERS:
        return [text]
    cuts = [overlong.end() for overlong in _OVERLONG.finditer(text, search_start)]
    parts: list[str] = []
    start = 0
    for end in [*cuts, len(text)]:
        parts += _PART.findall(text, start, end)
        start = end
    return parts


def located_words(text: str, tokenizer: Tokenizer = "en") -> list[Word]:
    """The words of a text, with their offsets in it."""
    return locations([words_of_text(text, tokenizer)], text)[0]


def locations(sentences: Iterable[Sequence[str]], text: str) -> list[list[Word]]:
    """
    The words of sentences, in the order of the text that they come from, with their offsets in it.
    """
    normalised = in_nfc(text)
    located_sentences: list[list[Word]] = []
    end = 0
    for words in sentences:
        located: list[Word] = []
        for word in words:
            start = normalised.find(word, end)
            if start < 0:
                expected = "a tokenizer that only splits the text"
                raise ValueError(f"expected {expected}, got the word {word!r:.60}")
            end = start + len(word)
            # Twice as fast as `Word(...)`.
            located.append(tuple.__new__(Word, (word, start, end)))
        located_sentences.append(located)
    if normalised == text:
        return located_sentences
    offsets = origins(text)
    return [[_with_offsets(word, offsets) for word in words] for words in located_sentences]


def _with_offsets(word: Word, offsets: list[int]) -> Word:
    """
    A word with its offsets in the text that was given, from `origins`. A last character that NFC
    has expanded is not divided.
    """
    last_character = offsets[word.end - 1]
    end = offsets[bisect_right(offsets, last_character)]
    return Word(word.text, offsets[word.start], end)


def pipeline_of(language: str) -> Any:
    """The shared pipeline of a language. The `lock` must be held."""
    pipeline = _pipelines.get(language)
    if pipeline is None or len(pipeline.vocab.strings) > _MAX_DISTINCT_WORDS:
        with needs("spacy"):
            import spacy

        # Its tokenizer follows the same rules as spaCy's trained models.
        pipeline = spacy.blank(language)
        _pipelines[language] = pipeline
        # Tokenizers from other packages, such as the Japanese one, have no cache.
        if hasattr(pipeline.tokenizer, "max_cache_size"):
            pipeline.tokenizer.max_cache_size = _CACHED_WORDS
    return pipeline


def _unlock() -> None:
    """In a forked process, where the thread that held the lock does not exist."""
    if lock.locked():
        lock.release()
        _pipelines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
