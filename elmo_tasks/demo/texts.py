"""Texts that people type: their limits, and their words."""

from collections.abc import Callable
from dataclasses import dataclass

from elmo_tasks.tokenization import blank_tokenizer
from elmo_tasks.unicode_text import in_nfc

__all__ = ["MAX_CHARACTERS", "MAX_SENTENCES", "MAX_WORDS", "Texts", "checked_text", "rules_of"]

MAX_SENTENCES = 12
"""Sentences whose words are compared."""
MAX_WORDS = 200
"""Words of a sentence."""
MAX_CHARACTERS = 20_000
"""Characters of a text, whatever its words."""
MAX_CHARACTERS_PER_WORD = 200
"""Characters without white space: the time of spaCy's rules grows with their square."""

# spaCy's rules for Korean need a program that is not Python. Its rules for any language separate punctuation marks.
_RULES = {"ko": "xx"}


def rules_of(language: str) -> str:
    """The language whose rules of spaCy split the words of a language."""
    return _RULES.get(language, language)


def checked_text(name: str, text: object, max_words: int = MAX_WORDS) -> str:
    """
    # Parameters

    name
        The name of the text, for an error.
    text
        Of any type, since it may come over HTTP.
    max_words
        The most words, separated by white space.

    # Returns

    `str`
        The text.

    # Raises

    `ValueError`
        If it is not a text, has no words, or too many or too long ones, or cannot be encoded.
    """
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a text, but is of the type {type(text).__name__}")
    if not text.strip():
        raise ValueError(f"{name} must have at least one word, but is empty: type one")
    n_words = len(text.split())
    if n_words > max_words:
        raise ValueError(f"{name} must have at most {max_words:,} words, but has {n_words:,}: shorten it")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"{name} must have at most {MAX_CHARACTERS:,} characters, but has {len(text):,}: shorten it")
    if (longest := max(map(len, text.split()))) > MAX_CHARACTERS_PER_WORD:
        raise ValueError(
            f"{name} must have at most {MAX_CHARACTERS_PER_WORD} characters without white space, but has {longest:,}: "
            "put spaces between its words"
        )
    return text


@dataclass(frozen=True)
class Texts:
    """
    Splits texts into words.

    # Parameters

    language
        spaCy's code of the language, whose rules are used.

    # Raises

    `ImportError`, `ValueError`
        See `blank_tokenizer`.
    """

    language: str = "en"

    def __post_init__(self) -> None:
        self._tokenize("")

    def words(self, name: str, text: object) -> list[str]:
        """
        The words of a sentence, in Unicode's form NFC; see `checked_text`.
        """
        words = in_nfc(self._tokenize(checked_text(name, text)))
        if len(words) > MAX_WORDS:
            raise ValueError(f"{name} must have at most {MAX_WORDS:,} words, but has {len(words):,}: shorten it")
        return words

    def sentences(self, texts: object) -> list[list[str]]:
        """
        The words of some sentences.

        # Raises

        `ValueError`
            If it is not a list of texts, has none or too many, or one is refused by `checked_text`.
        """
        if not isinstance(texts, list) or not texts:
            raise ValueError("there must be at least one sentence, but there is none: type one a line")
        if len(texts) > MAX_SENTENCES:
            raise ValueError(f"there must be at most {MAX_SENTENCES} sentences, but there are {len(texts):,}")
        return [self.words(f"sentence {number}", text) for number, text in enumerate(texts, start=1)]

    @property
    def _tokenize(self) -> Callable[[str], list[str]]:
        return blank_tokenizer(rules_of(self.language))
