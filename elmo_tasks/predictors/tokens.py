"""AllenNLP's tokens of a text, and the offsets of spans of them."""

from collections.abc import Sequence
from typing import Any

from allennlp.common.util import JsonDict
from allennlp.data import Token
from allennlp.data.fields import ListField, TextField

from elmo_tasks.text import Word, as_words

__all__ = ["as_tokens", "offsets_of", "span_in", "tokens_of"]


def as_tokens(words: Any) -> list[Token]:
    """AllenNLP's tokens for words, which may have offsets in a text."""
    if isinstance(words, list) and all(isinstance(word, Word) for word in words):
        return [Token(word.text, word.start, word.end) for word in words]
    return [Token(word) for word in as_words(words)]


def tokens_of(field: TextField | ListField) -> list[Token]:
    """The tokens of a text, or of all sentences of a document."""
    if not isinstance(field, ListField):
        return list(field)
    tokens = []
    for sentence in field:
        tokens += tokens_of(sentence)
    return tokens


def offsets_of(tokens: Sequence[Token], first: int, last: int) -> dict[str, int]:
    """
    The offsets of the first character of a span and of the character after its last, if the words
    come from a text. The span is given by its first and last word.
    """
    if tokens[first].idx is None:
        return {}
    return {"start_char": tokens[first].idx, "end_char": tokens[last].idx_end}


def span_in(text: str, offsets: JsonDict) -> JsonDict:
    """A span of a plain result, from one with `start_char` and `end_char`."""
    start = offsets["start_char"]
    end = offsets["end_char"]
    return {"text": text[start:end], "start": start, "end": end}
