"""From text to sentences: by blank lines, and between them by spaCy's rule for sentence ends."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

from elmo_tasks.files.extras import needs
from elmo_tasks.files.recent import Recent
from elmo_tasks.text.normal import in_nfc
from elmo_tasks.text.words import Sentence, Tokenizer, Word, locations, tokens_of_text

__all__ = [
    "MAX_SENTENCE_WORDS",
    "Document",
    "located_sentences",
    "pieces",
    "sentence_ranges",
    "sentences_of_text",
]

Document = str | Sequence[Sentence]
"""A text, or a list of its sentences."""

MAX_SENTENCE_WORDS = 96
"""The length of the longest piece of an overlong sentence."""

# Up to a number of characters; one takes about 30 bytes.
_LOCATED: Recent[list[list[Word]]] = Recent(500_000)
_BLANK_LINES = re.compile(r"\n\s*\n")
# After one of these, a long sentence is cut.
_BREAKS = frozenset(";:,–—…)]}，；：、）") | {"...", "--"}


def sentences_of_text(text: str, tokenizer: Tokenizer = "en") -> list[list[str]]:
    """
    The words of each sentence of a text: the text is normalised to NFC, then split at blank lines
    and by spaCy's rule for sentence ends, then into words without white space. Sentences without
    words are left out.
    """
    sentences: list[list[str]] = []
    for paragraph in _BLANK_LINES.split(in_nfc(text)):
        # With white space, after which a quotation mark begins the next sentence.
        tokens = tokens_of_text(paragraph, tokenizer)
        for part in sentence_ranges(tokens):
            sentences.append(
                [token for token in tokens[part.start : part.stop] if not token.isspace()]
            )
    return list(filter(None, sentences))


def located_sentences(text: str, tokenizer: Tokenizer = "en") -> list[list[Word]]:
    """
    Like `sentences_of_text`, with the offsets of each word in the text as it was given. Several
    tasks read one text, so the words of the last texts are kept.
    """
    if not isinstance(tokenizer, str):
        return locations(sentences_of_text(text, tokenizer), text)
    sentences = _LOCATED.get((text, tokenizer))
    if sentences is None:
        sentences = locations(sentences_of_text(text, tokenizer), text)
        _LOCATED.put((text, tokenizer), sentences, len(text))
    return list(map(list, sentences))


def sentence_ranges(tokens: Sequence[str]) -> list[range]:
    """
    The positions of the tokens of each sentence by the rule of spaCy's `sentencizer`, which is the
    same for all languages: after a sentence end, the next sentence begins at the first token that
    is not punctuation.
    """
    ends, is_punctuation = _rule()
    starts, is_after_end = [0] if tokens else [], False
    for position, token in enumerate(tokens):
        if token in ends:
            is_after_end = True
        elif is_after_end and not (token and is_punctuation(token)):
            starts.append(position)
            is_after_end = False
    return [range(*bounds) for bounds in pairwise([*starts, len(tokens)])]


@cache
def _rule() -> tuple[frozenset[str], Callable[[str], bool]]:
    """The signs that end a sentence, and whether all characters of a token are punctuation."""
    with needs("spacy"):
        from spacy.lang.lex_attrs import is_punct
        from spacy.pipeline import Sentencizer

    return frozenset(Sentencizer.default_punct_chars), is_punct


def pieces(words: Sequence[str], max_words: int = MAX_SENTENCE_WORDS) -> list[range]:
    """
    The positions of the words of each piece of a sentence. A piece has at most `max_words` words:
    it ends after the last punctuation in its second half, or has `max_words` words if there is
    none.
    """
    found = []
    start = 0
    while len(words) - start > max_words:
        middle, end = start + max_words // 2, start + max_words
        end = next((place for place in range(end, middle, -1) if words[place - 1] in _BREAKS), end)
        found.append(range(start, end))
        start = end
    return [*found, range(start, len(words))]
