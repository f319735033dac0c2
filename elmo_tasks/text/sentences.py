"""From text to sentences: by blank lines, and between them by spaCy's rule for sentence ends."""

import re
from collections.abc import Callable, Sequence
from functools import cache

from elmo_tasks.files.extras import needs
from elmo_tasks.files.recent import Recent
from elmo_tasks.text.normal import in_nfc
from elmo_tasks.text.words import Sentence, Tokenizer, Word, locations, tokens_of_text

__all__ = [
    "MAX_SENTENCE_WORDS",
    "TextOrSentences",
    "located_sentences",
    "pieces",
    "sentence_ranges",
    "sentences_of_text",
]

TextOrSentences = str | Sequence[Sentence]
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
        for positions in sentence_ranges(tokens):
            sentence = tokens[positions.start : positions.stop]
            words = [token for token in sentence if not token.isspace()]
            if words:
                sentences.append(words)
    return sentences


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
    if not tokens:
        return []
    end_signs, is_punctuation = _rule()
    starts = [0]
    is_after_end = False
    for position, token in enumerate(tokens):
        if token in end_signs:
            is_after_end = True
        elif is_after_end and not (token and is_punctuation(token)):
            starts.append(position)
            is_after_end = False
    ends = [*starts[1:], len(tokens)]
    return list(map(range, starts, ends))


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
    ranges = []
    start = 0
    while len(words) - start > max_words:
        end = _end_of_piece(words, start, max_words)
        ranges.append(range(start, end))
        start = end
    ranges.append(range(start, len(words)))
    return ranges


def _end_of_piece(words: Sequence[str], start: int, max_words: int) -> int:
    middle = start + max_words // 2
    end = start + max_words
    for position in reversed(range(middle, end)):
        if words[position] in _BREAKS:
            return position + 1
    return end
