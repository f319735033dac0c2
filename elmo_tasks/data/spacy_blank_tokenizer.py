"""spaCy's tokenizer without a model to download."""

from allennlp.data.tokenizers import Token, Tokenizer
from spacy.attrs import IDX, IS_SPACE, LENGTH

from elmo_tasks.tokenization import blank_pipeline

__all__ = ["SpacyBlankTokenizer"]


@Tokenizer.register("spacy_blank")
class SpacyBlankTokenizer(Tokenizer):
    """
    Splits text by spaCy's rules for a language, which its trained models also use.

    # Parameters

    language : `str`
        spaCy's code of the language.
    """

    def __init__(self, language: str = "en") -> None:
        self._tokenizer = blank_pipeline(language).tokenizer

    def tokenize(self, text: str) -> list[Token]:
        """The words with their places in `text`, in characters, without white space."""
        document = self._tokenizer(text)
        # Faster than a spaCy object for each token. Shape: (n_tokens, 3)
        places = document.to_array([IDX, LENGTH, IS_SPACE]).tolist()
        text = document.text
        return [
            Token(text[start : start + length], start, start + length)
            for start, length, is_space in places
            if not is_space
        ]
