"""Text into words by spaCy's rules, which need no model; spaCy is imported when there is text to tokenise."""

from collections.abc import Callable
from functools import lru_cache

__all__ = ["blank_tokenizer"]


@lru_cache(maxsize=8)
def blank_tokenizer(language: str = "en") -> Callable[[str], list[str]]:
    """
    The tokenizer that spaCy has by rule for each language, the same that its trained models use.

    # Parameters

    language : `str`, optional (default = `"en"`)
        spaCy's code of the language.

    # Returns

    `Callable[[str], List[str]]`
        From a text to its words; white space is left out.

    # Raises

    `ModuleNotFoundError`
        If spaCy is not installed.
    `ValueError`
        If spaCy does not know the language.
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
        tokenizer = spacy.blank(language).tokenizer
    except ImportError as error:
        raise ValueError(
            f"language must be a code that spaCy knows, like 'en' or 'de', but is {language!r}: {error}"
        ) from error
    return lambda text: [token.text for token in tokenizer(text) if not token.is_space]
