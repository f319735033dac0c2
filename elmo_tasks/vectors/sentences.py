"""The words of a sentence as callers give it."""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from elmo_tasks.tokenization import blank_tokenizer

__all__ = ["Sentence", "Tokenizer", "words_of"]

Sentence = str | Sequence[str]
"""A sentence as a string, or as a list of its words."""
Tokenizer = Callable[[str], Sequence[str]]
"""Splits a string into words."""

_RULE_OF_TOKENIZERS = "a tokenizer must return a list of words that are strings"
_RULE = "a sentence must be a string, or a list of words that are strings"


def words_of(sentence: Sentence, index: int, tokenizer: Tokenizer | None = None) -> list[str]:
    """
    # Parameters

    sentence
        A list of words is taken as it is; a string is split.
    index
        The number of the sentence, for the message.
    tokenizer
        Splits a string. `None`: spaCy's rules for English.

    # Raises

    `ValueError`
        If it is neither a string nor a list of words, or the tokenizer returns something else than a list of words.
    `ModuleNotFoundError`
        If spaCy is needed and not installed.
    """
    if isinstance(sentence, str):
        # spaCy takes no subclass of str, as NumPy's arrays of strings have.
        try:
            split = (tokenizer or blank_tokenizer())(str(sentence))
        except UnicodeEncodeError as error:
            raise ValueError(f"{_RULE}, but sentence {index} cannot be encoded: {error}") from None
        if tokenizer is None:
            return list(split)
        rule, what = _RULE_OF_TOKENIZERS, f"what it returned for sentence {index}"
        if isinstance(split, str):
            raise ValueError(f"{rule}, but {what} is the string {split!r:.80}")
        return _checked(split, rule, what)
    return _checked(sentence, _RULE, f"sentence {index}")


def _checked(words: Iterable[object], rule: str, what: str) -> list[str]:
    try:
        found = list(words)
    except TypeError:
        raise ValueError(f"{rule}, but {what} is {words!r:.80}") from None
    for word in found:
        if not isinstance(word, str):
            raise ValueError(f"{rule}, but {what} has the word {word!r:.80}, a {type(word).__name__}")
    return cast(list[str], found)
