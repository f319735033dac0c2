"""From text to sentences: by blank lines, and between them by spaCy's rule for sentence ends."""

import re
from collections.abc import Sequence

from elmo_tasks.recent import Recent
from elmo_tasks.text.normal import in_nfc
from elmo_tasks.text.words import Sentence, Tokenizer, Word, locations, lock, pipeline_of, tokens_of_text, words_of_text

__all__ = ["MAX_SENTENCE_WORDS", "Document", "located_sentences", "pieces", "sentences_of_text"]
__all__ += ["sentences_of_words"]

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
    The words of each sentence of a text: the text is normalised to NFC, then split at blank lines and by
    spaCy's rule for sentence ends, then into words without white space. Sentences without words are left out.
    """
    sentences: list[list[str]] = []
    for paragraph in _BLANK_LINES.split(in_nfc(text)):
        if isinstance(tokenizer, str) and tokenizer != "whitespace":
            # With white space, after which a quotation mark begins the next sentence.
            tokens = sentences_of_words(tokens_of_text(paragraph, tokenizer), tokenizer)
            sentences += [[token for token in sentence if not token.isspace()] for sentence in tokens]
        else:
            sentences += sentences_of_words(words_of_text(paragraph, tokenizer))
    return list(filter(None, sentences))


def located_sentences(text: str, tokenizer: Tokenizer = "en") -> list[list[Word]]:
    """
    Like `sentences_of_text`, with the offsets of each word in the text as it was given. Several tasks read one text, so
    the words of the last texts are kept.
    """
    if not isinstance(tokenizer, str):
        return locations(sentences_of_text(text, tokenizer), text)
    sentences = _LOCATED.get((text, tokenizer))
    if sentences is None:
        sentences = locations(sentences_of_text(text, tokenizer), text)
        _LOCATED.put((text, tokenizer), sentences, len(text))
    return list(map(list, sentences))


def sentences_of_words(words: Sequence[str], language: str = "xx") -> list[list[str]]:
    """Groups words into sentences by spaCy's rule for sentence ends, which is the same for all languages."""
    if not words:
        return []
    with lock:
        pipeline = pipeline_of(language)
        from spacy.tokens import Doc

        # spaCy accepts neither subclasses of str, such as NumPy's, nor empty words, nor lone surrogates.
        document = Doc(pipeline.vocab, words=[in_nfc(word) or " " for word in words])
        bounds = [(sentence.start, sentence.end) for sentence in pipeline.get_pipe("sentencizer")(document).sents]
    return [list(words[start:end]) for start, end in bounds]


def pieces(words: Sequence[str], max_words: int = MAX_SENTENCE_WORDS) -> list[range]:
    """
    The positions of the words of each piece of a sentence. A piece has at most `max_words` words: it ends
    after the last punctuation in its second half, or has `max_words` words if there is none.
    """
    found = []
    start = 0
    while len(words) - start > max_words:
        middle, end = start + max_words // 2, start + max_words
        end = next((place for place in range(end, middle, -1) if words[place - 1] in _BREAKS), end)
        found.append(range(start, end))
        start = end
    return [*found, range(start, len(words))]
