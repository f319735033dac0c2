"""spaCy's tokenizer without a model to download."""

from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import Token, Tokenizer

from elmo_tasks.tokenization import blank_pipeline

__all__ = ["SpacyBlankTokenizer"]


@Tokenizer.register("spacy_blank")
class SpacyBlankTokenizer(Tokenizer):
    """
    spaCy's rules for a language, which its trained models use too.

    Registered as a `Tokenizer` with name "spacy_blank".

    # Parameters

    language : `str`
        spaCy's code of the language.

    # Raises

    `ConfigurationError`
        If spaCy does not know the language.
    `ImportError`
        If spaCy knows it, but a package of the language is missing.
    """

    def __init__(self, language: str = "en") -> None:
        try:
            self._tokenizer = blank_pipeline(language).tokenizer
        except ValueError as error:
            raise ConfigurationError(str(error)) from error

    def tokenize(self, text: str) -> list[Token]:
        """
        # Returns

        `List[Token]`
            The words with their places in `text`, in characters, without white space.
        """
        return [
            Token(token.text, idx=token.idx, idx_end=token.idx + len(token))
            for token in self._tokenizer(text)
            if not token.is_space
        ]
