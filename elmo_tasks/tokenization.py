"""Words and sentences of a text by spaCy's rules, which need no model; spaCy is imported at the first use."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

__all__ = ["blank_pipeline", "blank_sentences", "blank_tokenizer", "sentences_of_words"]

# How many words, with the marks at them, a tokenizer splits by its rules only once: with spaCy's 10,000 it spends most
# of its time on those that are not among them. About 20 MB.
_CACHED_WORDS = 200_000
# Of all texts together, after which a pipeline is made anew: spaCy keeps each of them. About 150 MB.
_MAX_DISTINCT_WORDS = 300_000


def blank_pipeline(language: str = "en") -> Any:
    """
    spaCy's pipeline of a language without components. Its tokenizer follows rules, the same as that of spaCy's trained
    models.

    # Parameters

    language
        spaCy's code of the language.

    # Returns

    `spacy.Language`
        A new pipeline, to which components may be added.

    # Raises

    `ModuleNotFoundError`
        If spaCy is not installed.
    `ValueError`
        If spaCy does not know the language.
    `ImportError`
        If spaCy knows the language, and another package is missing, as for Japanese.
    """
    try:
        import spacy
    except ModuleNotFoundError as error:
        if error.name != "spacy":
            raise
        raise ModuleNotFoundError(
            "text is split into words by spaCy, which is not installed. Remedy: `pip install spacy`, or give each "
            "sentence as a list of its words",
            name="spacy",
        ) from None
    try:
        pipeline = spacy.blank(language)
    except ImportError as error:
        # Its code E048 does not suffice: a known language whose own imports fail has it too.
        missing = error.__cause__
        if not isinstance(missing, ModuleNotFoundError) or missing.name != f"spacy.lang.{language}":
            raise
        raise ValueError(
            f"language must be a code that spaCy knows, like 'en' or 'de', but is {language!r}: {error}"
        ) from error
    # Tokenizers of other packages, as that of Japanese, have no cache.
    if hasattr(pipeline.tokenizer, "max_cache_size"):
        pipeline.tokenizer.max_cache_size = _CACHED_WORDS
    return pipeline


@lru_cache(maxsize=8)
def blank_tokenizer(language: str = "en") -> Callable[[str], list[str]]:
    """
    spaCy's tokenizer of a language.

    # Parameters

    language
        spaCy's code of the language.

    # Returns

    `Callable[[str], List[str]]`
        From a text to its words, without white space.

    # Raises

    `ImportError`, `ValueError`
        See `blank_pipeline`.
    """
    return _Tokenizer(language)


@lru_cache(maxsize=8)
def blank_sentences(language: str = "en") -> Callable[[str], list[list[str]]]:
    """
    spaCy's rule for the ends of sentences (full stops and the like), over the tokens of `blank_tokenizer`.

    # Parameters

    language
        spaCy's code of the language.

    # Returns

    `Callable[[str], List[List[str]]]`
        From a text to the words of its sentences.

    # Raises

    `ImportError`, `ValueError`
        See `blank_pipeline`.
    """
    return _SentenceSplitter(language)


# Classes, and no functions: these can be pickled.
class _Tokenizer:
    def __init__(self, language: str) -> None:
        self._language = language
        self._pipeline = _renewed(lambda: blank_pipeline(language))

    def __call__(self, text: str) -> list[str]:
        return [token.text for token in self._pipeline().tokenizer(text) if not token.is_space]

    def __reduce__(self) -> tuple[Any, ...]:
        return blank_tokenizer, (self._language,)

    def __repr__(self) -> str:
        return f"blank_tokenizer({self._language!r})"


class _SentenceSplitter:
    def __init__(self, language: str) -> None:
        self._language = language
        self._pipeline = _renewed(lambda: _pipeline_of_sentences(language))

    def __call__(self, text: str) -> list[list[str]]:
        # Not by the pipeline itself, which refuses more than a million characters because of parsers.
        pipeline = self._pipeline()
        document = pipeline.get_pipe("sentencizer")(pipeline.tokenizer(text))
        sentences = ([token.text for token in sentence if not token.is_space] for sentence in document.sents)
        return [sentence for sentence in sentences if sentence]

    def __reduce__(self) -> tuple[Any, ...]:
        return blank_sentences, (self._language,)


def sentences_of_words(words: Sequence[str]) -> list[list[str]]:
    """
    spaCy's rule for the ends of sentences, in the scripts of all languages, over words that were split in another way.

    # Raises

    `ModuleNotFoundError`
        If spaCy is not installed.
    """
    pipeline = _any_language()()
    from spacy.tokens import Doc

    # spaCy takes no subclass of str, as NumPy's arrays of strings have, no empty word and no half of a surrogate pair.
    given = [word.encode("utf-8", "replace").decode() or " " for word in words]
    document = pipeline.get_pipe("sentencizer")(Doc(pipeline.vocab, words=given))
    return [list(words[sentence.start : sentence.end]) for sentence in document.sents] if words else []


@lru_cache(maxsize=1)
def _any_language() -> Callable[[], Any]:
    return _renewed(lambda: _pipeline_of_sentences("xx"))


def _pipeline_of_sentences(language: str) -> Any:
    pipeline = blank_pipeline(language)
    pipeline.add_pipe("sentencizer")
    return pipeline


def _renewed(make: Callable[[], Any]) -> Callable[[], Any]:
    """A function that returns a pipeline, and from time to time a new one, so that its words do not fill the memory."""
    made = [make()]

    def pipeline() -> Any:
        current = made[0]
        if len(current.vocab.strings) > _MAX_DISTINCT_WORDS:
            made[0] = current = make()
        return current

    return pipeline
