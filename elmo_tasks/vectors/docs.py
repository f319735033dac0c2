"""spaCy's documents as sentences. spaCy is not imported: without it, nothing is a `Doc`."""

import sys
from collections.abc import Iterable
from typing import Any

from elmo_tasks.text import in_nfc, sentence_ranges

__all__ = ["is_doc", "sentences_of_doc", "words_of_doc"]


def is_doc(item: Any) -> bool:
    """Whether an object is a `Doc`, or a `Span` of one."""
    tokens = sys.modules.get("spacy.tokens")
    return tokens is not None and isinstance(item, tokens.Doc | tokens.Span)


def words_of_doc(tokens: Iterable[Any]) -> list[str]:
    """The tokens in NFC, without white space, as the component `elmo` reads them."""
    return [in_nfc(token.text) for token in tokens if not token.is_space]


def sentences_of_doc(doc: Any) -> list[list[str]]:
    """The words of its sentences, or without boundaries those that the rule for texts finds."""
    if doc.doc.has_annotation("SENT_START"):
        sentences = [words_of_doc(sentence) for sentence in doc.sents]
    else:
        tokens = list(doc)
        ranges = sentence_ranges([token.text for token in tokens])
        sentences = [words_of_doc(tokens[positions.start : positions.stop]) for positions in ranges]
    return [words for words in sentences if words]
