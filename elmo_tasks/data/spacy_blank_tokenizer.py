"""spaCy's tokenizer without a model to download."""

from allennlp.data.tokenizers import Token, Tokenizer

from elmo_tasks.text import located_words

__all__ = ["SpacyBlankTokenizer"]


@Tokenizer.register("spacy_blank")
class SpacyBlankTokenizer(Tokenizer):
    """
    Splits text by spaCy's rules for a language, given by its code. spaCy's trained models use the
    same rules.
    """

    def __init__(self, language: str = "en") -> None:
        self._language = language

    def tokenize(self, text: str) -> list[Token]:
        """The words in NFC, with their places in `text`, in characters, without white space."""
        tokens = []
        for word in located_words(text, self._language):
            tokens.append(Token(word.text, word.start, word.end))
        return tokens
