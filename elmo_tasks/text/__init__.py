"""
From text to words and sentences: `normal`, `words`, `sentences`. `formats` reads files, and `tags`
converts between tags and spans.
"""

from elmo_tasks.text.normal import in_nfc, readable
from elmo_tasks.text.sentences import (
    MAX_SENTENCE_WORDS,
    located_sentences,
    pieces,
    sentence_ranges,
    sentences_of_text,
)
from elmo_tasks.text.words import (
    BOUNDARIES,
    TREEBANK_WORDS,
    Tokenizer,
    Word,
    as_words,
    located_words,
    words_of_text,
)

__all__ = [
    "BOUNDARIES",
    "MAX_SENTENCE_WORDS",
    "TREEBANK_WORDS",
    "Tokenizer",
    "Word",
    "as_words",
    "in_nfc",
    "located_sentences",
    "located_words",
    "pieces",
    "readable",
    "sentence_ranges",
    "sentences_of_text",
    "words_of_text",
]
