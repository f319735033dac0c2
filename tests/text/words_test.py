"""Tests of splitting into words and sentences by spaCy's rules."""

import sys

import pytest
import spacy

from elmo_tasks.text import sentences_of_words, words_of_text

TEXTS = ["Jordan beat Chelsea .", "Mr. O'Neill doesn't live\tin  the U.K.\n", "", "   ", "e.g. 3.5km, $5bn; don't!"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_words_equal_spacys_without_white_space(language):
    for text in TEXTS:
        expected = [token.text for token in spacy.blank(language)(text) if not token.text.isspace()]
        assert words_of_text(text, language) == expected


def test_errors_name_the_missing_package(monkeypatch):
    with pytest.raises(ImportError, match="klingon"):
        words_of_text("text", "klingon")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ModuleNotFoundError, match="pip install spacy"):
        words_of_text("text", "it")


def test_memory_is_bounded(monkeypatch):
    """A pipeline that has seen many distinct words is replaced."""
    made = []
    blank = spacy.blank
    monkeypatch.setattr(spacy, "blank", lambda language: made.append(blank(language)) or made[-1])
    words = [f"word{i}" for i in range(301_000)]
    assert sentences_of_words(words) == [words]
    assert sentences_of_words(["a"]) == [["a"]]
    assert len(made[-1].vocab.strings) < 10_000
