"""
From text to words and sentences, at all doors. spaCy, whose rules need no model, is imported on first use.

A text is normalised to Unicode NFC and then split. A biLM reads words as bytes, so the same word in a different form,
as in macOS file names, would have different vectors. Words that are given as a list are used as they are.
"""

import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

__all__ = ["Tokenizer", "blank_pipeline", "sentences_of_text", "sentences_of_words", "warn_if_untokenised"]
__all__ += ["words_of_text"]

logger = logging.getLogger(__name__)

Tokenizer = str | Callable[[str], Sequence[str]]
"""spaCy's code of a language with rules for it (`"de"`; `"xx"` for any), `"whitespace"`, or a function."""

_Line = TypeVar("_Line", bound=str | list[str])

# Words in a tokenizer's cache, about 20 MB. With spaCy's default of 10,000, most of the time goes into uncached words.
# (A memory zone per text would drop the cache after each text, which takes ten times as long.)
_CACHED_WORDS = 200_000
# A pipeline keeps each distinct word; after this many, about 150 MB, it is replaced by a new one.
_MAX_DISTINCT_WORDS = 300_000

_PIPELINES: dict[str, Any] = {}


def blank_pipeline(language: str) -> Any:
    """A new `spacy.Language` without components. Its tokenizer follows the same rules as spaCy's trained models."""
    try:
        import spacy
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "spaCy splits text into words: `pip install spacy`, or pass each sentence as a list of words",
            name=error.name,
        ) from error
    pipeline = spacy.blank(language)
    # Tokenizers from other packages, such as the Japanese one, have no cache.
    if hasattr(pipeline.tokenizer, "max_cache_size"):
        pipeline.tokenizer.max_cache_size = _CACHED_WORDS
    return pipeline


def words_of_text(text: str, tokenizer: Tokenizer = "en") -> list[str]:
    """The words of a text."""
    # spaCy does not accept subclasses of str, such as the items of NumPy's string arrays.
    text = unicodedata.normalize("NFC", str(text))
    if tokenizer == "whitespace":
        return text.split()
    if not isinstance(tokenizer, str):
        return list(tokenizer(text))
    return [token.text for token in _pipeline(tokenizer).tokenizer(text) if not token.is_space]


def sentences_of_text(text: str, tokenizer: Tokenizer = "en") -> list[list[str]]:
    """The words of each sentence of a text, by spaCy's rule for sentence ends."""
    if tokenizer == "whitespace" or not isinstance(tokenizer, str):
        return sentences_of_words(words_of_text(text, tokenizer))
    # The pipeline itself would reject more than a million characters, a limit that is meant for parsers.
    pipeline = _pipeline(tokenizer)
    document = pipeline.get_pipe("sentencizer")(pipeline.tokenizer(unicodedata.normalize("NFC", str(text))))
    sentences = ([token.text for token in sentence if not token.is_space] for sentence in document.sents)
    return [sentence for sentence in sentences if sentence]


def warn_if_untokenised(lines: Iterable[_Line], source: object) -> Iterator[_Line]:
    """
    The same lines, which a command splits at white space, or lists of words. If more than one in five of the first
    thousand lines ends in a word with a full stop, one warning is logged: `closed.` would be a different word.
    """
    lines = iter(lines)
    first = list(islice(lines, 1000))
    words = [line.split()[-1] for line in first if isinstance(line, str) and line.strip()]
    attached = [word for word in words if word.endswith(".") and word.strip(".")]
    if 5 * len(attached) > len(words):
        _warn_of_untokenised(str(source), attached[0])
    return chain(first, lines)


@cache
def _warn_of_untokenised(source: str, word: str) -> None:
    hint = "tokenise it first: `python -m elmo_tasks embed` has --tokenize en (or de, ...) for spaCy's rules"
    logger.warning("%s does not look tokenised: %r, at the end of a line, is one word; %s", source, word, hint)


def sentences_of_words(words: Sequence[str]) -> list[list[str]]:
    """Groups words from a different tokenizer into sentences by spaCy's rule for sentence ends in all scripts."""
    from spacy.tokens import Doc

    pipeline = _pipeline("xx")
    # spaCy accepts neither subclasses of str, such as NumPy's, nor empty words.
    document = pipeline.get_pipe("sentencizer")(Doc(pipeline.vocab, words=[str(word) or " " for word in words]))
    return [list(words[sentence.start : sentence.end]) for sentence in document.sents] if words else []


def _pipeline(language: str) -> Any:
    pipeline = _PIPELINES.get(language)
    if pipeline is None or len(pipeline.vocab.strings) > _MAX_DISTINCT_WORDS:
        pipeline = _PIPELINES[language] = blank_pipeline(language)
        pipeline.add_pipe("sentencizer")
    return pipeline
