import sys

import pytest
import spacy

from elmo_tasks.tokenization import blank_sentences, blank_tokenizer

TEXTS = ["Jordan beat Chelsea .", "Mr. O'Neill doesn't live\tin  the U.K.\n", "", "   ", "e.g. 3.5km, $5bn; don't!"]


class TestBlankTokenizer:
    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("language", ["en", "de"])
    def test_the_words_are_those_of_spacy(self, text, language):
        """Oracle: a blank pipeline; white space is no word."""
        expected = [token.text for token in spacy.blank(language)(text) if not token.text.isspace()]
        assert blank_tokenizer(language)(text) == expected

    @pytest.mark.parametrize("make", [blank_tokenizer, blank_sentences])
    def test_an_unknown_language_is_an_error(self, make):
        """Oracle: the message names it."""
        with pytest.raises(ValueError, match=r"language must be a code that spaCy knows.*'klingon'"):
            make("klingon")

    @pytest.mark.parametrize("make", [blank_tokenizer, blank_sentences])
    def test_without_spacy_the_error_says_what_to_do(self, make, monkeypatch):
        """Oracle: the message."""
        monkeypatch.setitem(sys.modules, "spacy", None)
        make.cache_clear()
        with pytest.raises(ModuleNotFoundError, match=r"pip install spacy.*, or give each sentence as a list"):
            make()


class TestBlankSentences:
    def test_sentences_end_where_spacy_s_rule_says(self):
        """Oracle: by hand; `Mr.` is one token and ends none, and white space makes none."""
        found = blank_sentences()(" Mr. Hill left.\n\nWhy? \n")
        assert found == [["Mr.", "Hill", "left", "."], ["Why", "?"]]
        assert blank_sentences()(" \n ") == blank_sentences()("") == []

    def test_a_text_may_be_longer_than_a_pipeline_takes(self):
        """Oracle: spaCy's own limit, which is there for parsers."""
        text = ("x" * 9_000 + ". ") * 120
        assert len(text) > spacy.blank("en").max_length
        assert len(blank_sentences()(text)) == 120
