"""Splits text into words and sentences by spaCy's rules, which need no model. spaCy is imported on first use."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

__all__ = ["blank_pipeline", "blank_sentences", "blank_tokenizer", "sentences_of_words"]

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


def blank_tokenizer(language: str = "en") -> Callable[[str], list[str]]:
    """Returns a function that splits a text into words by spaCy's rules, without white space."""
    _pipeline(language)
    return partial(_words, language=language)


def blank_sentences(language: str) -> Callable[[str], list[list[str]]]:
    """Returns a function that splits a text into sentences, as lists of words, by spaCy's rule for sentence ends."""
    _pipeline(language)
    return partial(_sentences, language=language)


def sentences_of_words(words: Sequence[str]) -> list[list[str]]:
    """Groups words from a different tokenizer into sentences by spaCy's rule for sentence ends in all scripts."""
    from spacy.tokens import Doc

    pipeline = _pipeline("xx")
    # spaCy accepts neither subclasses of str, such as NumPy's, nor empty words.
    document = pipeline.get_pipe("sentencizer")(Doc(pipeline.vocab, words=[str(word) or " " for word in words]))
    return [list(words[sentence.start : sentence.end]) for sentence in document.sents] if words else []


def _words(text: str, language: str) -> list[str]:
    return [token.text for token in _pipeline(language).tokenizer(text) if not token.is_space]


def _sentences(text: str, language: str) -> list[list[str]]:
    # The pipeline itself would reject more than a million characters, a limit that is meant for parsers.
    pipeline = _pipeline(language)
    document = pipeline.get_pipe("sentencizer")(pipeline.tokenizer(text))
    sentences = ([token.text for token in sentence if not token.is_space] for sentence in document.sents)
    return [sentence for sentence in sentences if sentence]


def _pipeline(language: str) -> Any:
    pipeline = _PIPELINES.get(language)
    if pipeline is None or len(pipeline.vocab.strings) > _MAX_DISTINCT_WORDS:
        pipeline = _PIPELINES[language] = blank_pipeline(language)
        pipeline.add_pipe("sentencizer")
    return pipeline
