"""spaCy's tokenizer without a model to download."""

import spacy
from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import Token, Tokenizer

__all__ = ["SpacyBlankTokenizer"]


@Tokenizer.register("spacy_blank")
class SpacyBlankTokenizer(Tokenizer):
    """
    The tokenizer that spaCy has by rule for each language, the same that its trained models use.

    Registered as a `Tokenizer` with name "spacy_blank".

    # Parameters

    language : `str`, optional (default = `"en"`)
        spaCy's code of the language.

    # Raises

    `ConfigurationError`
        If spaCy does not know the language.
    """

    def __init__(self, language: str = "en") -> None:
        try:
            self._tokenizer = spacy.blank(language).tokenizer
        except ImportError as error:
            raise ConfigurationError(
                f"language must be a code that spaCy knows, like 'en' or 'de', but is {language!r}: {error}"
            ) from error

    def tokenize(self, text: str) -> list[Token]:
        """
        # Returns

        `List[Token]`
            The words with their place in `text`, in characters; white space is left out.
        """
        return [
            Token(token.text, idx=token.idx, idx_end=token.idx + len(token))
            for token in self._tokenizer(text)
            if not token.is_space
        ]
