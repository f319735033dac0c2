"""The words of a sentence as callers give it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from elmo_tasks.tokenization import blank_tokenizer

__all__ = ["Sentence", "Tokenizer", "refuse_no_list", "words_of"]

Sentence = str | Sequence[str]
"""A sentence as a string, or as a list of its words."""
Tokenizer = Callable[[str], Sequence[str]]
"""Splits a string into words."""

_RULE_OF_TOKENIZERS = "a tokenizer must return a list of words that are strings"
_RULE = "a sentence must be a string, or a list of words that are strings"


def refuse_no_list(given: object, what: str) -> None:
    """
    # Parameters

    given
        What a caller gave as a list.
    what
        Of what it is to be a list, as "sentences".

    # Raises

    `ValueError`
        If it is a string; or a table or a dictionary, whose names would be read in place of what is in it.
    """
    if isinstance(given, str):
        raise ValueError(f"{what} must be a list of {what}, but is the string {given[:60]!r}: put it into a list")
    if isinstance(given, Mapping) or hasattr(given, "columns"):
        raise ValueError(
            f"{what} must be a list of {what}, but is a {type(given).__name__}, of which only the names would be read: "
            "give one of its columns or values, as table['text']"
        )


def words_of(sentence: Sentence, index: int, tokenizer: Tokenizer | None = None, what: str = "sentence") -> list[str]:
    """
    # Parameters

    sentence
        A list of words is taken as it is; a string is split.
    index
        The number of the sentence, for the message.
    tokenizer
        Splits a string. `None`: spaCy's rules for English.
    what
        Of what the words are, for the message.

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
            raise ValueError(f"{_RULE}, but {what} {index} cannot be encoded: {error}") from None
        if tokenizer is None:
            return list(split)
        rule, returned = _RULE_OF_TOKENIZERS, f"what it returned for {what} {index}"
        if isinstance(split, str):
            raise ValueError(f"{rule}, but {returned} is the string {split!r:.80}")
        return _checked(split, rule, returned)
    return _checked(sentence, _RULE, f"{what} {index}")


def _checked(words: Iterable[object], rule: str, what: str) -> list[str]:
    if isinstance(words, Mapping):
        raise ValueError(
            f"{rule}, but {what} is a {type(words).__name__}, of which only the names would be read, not the values "
            f"(as row['text']): {words!r:.80}"
        )
    if isinstance(words, set | frozenset):
        raise ValueError(f"{rule}, but {what} is a {type(words).__name__}, whose words have no order: {words!r:.80}")
    try:
        found = list(words)
    except TypeError:
        raise ValueError(f"{rule}, but {what} is {words!r:.80}") from None
    for word in found:
        if not isinstance(word, str):
            remedy = ": give [token.text for token in doc]" if hasattr(word, "text") else ""
            raise ValueError(f"{rule}, but {what} has the word {word!r:.80}, a {type(word).__name__}{remedy}")
    return cast(list[str], found)
