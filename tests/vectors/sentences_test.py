"""Tests of the words of a sentence."""

import numpy as np
import pytest
import spacy

from elmo_tasks.vectors.sentences import words_of


class TestWordsOf:
    @pytest.mark.parametrize(
        "sentence",
        [["a", "b c"], ("a", "b c"), np.array(["a", "b c"]), iter(["a", "b c"])],
        ids=lambda s: type(s).__name__,
    )
    def test_words_are_taken_as_they_are(self, sentence):
        """Oracle: the words."""
        assert words_of(sentence, 0, str.split) == ["a", "b c"]

    def test_a_string_is_split_by_the_tokenizer_or_by_spacy(self):
        """Oracle: by hand."""
        assert words_of("Don't stop,", 0, str.split) == ["Don't", "stop,"]
        assert words_of("Don't stop,", 0) == ["Do", "n't", "stop", ","]
        assert words_of(np.str_("Don't"), 0) == ["Do", "n't"]

    @pytest.mark.parametrize(
        ("sentence", "message"),
        [
            (None, "a sentence must be a string, or a list of words that are strings, but sentence 7 is None"),
            (["a", 3], "but sentence 7 has the word 3, a int"),
            ("a \ud800", "sentence 7 cannot be encoded: .*surrogates not allowed"),
            (b"bytes", "but sentence 7 has the word 98, a int"),
            ({"text": "a b"}, r"but sentence 7 is a dict, .* not the values \(as row\['text'\]\): \{'text': 'a b'\}"),
            ({"a"}, "but sentence 7 is a set, whose words have no order"),
            ([["a"]], r"but sentence 7 has the word \['a'\], a list"),
            (spacy.blank("en")("It rains"), r"has the word It, a Token: give \[token.text for token in doc\]"),
        ],
    )
    def test_another_object_is_an_error(self, sentence, message):
        """Oracle: the rule, the number and the value in the message."""
        with pytest.raises(ValueError, match=message):
            words_of(sentence, 7)

    @pytest.mark.parametrize(
        ("split", "message"),
        [
            (str.lower, "must return a list of words .* for sentence 7 is the string 'das ist'"),
            (lambda text: None, "for sentence 7 is None"),
            (lambda text: [0, text], "for sentence 7 has the word 0, a int"),
        ],
    )
    def test_another_result_of_the_tokenizer_is_an_error(self, split, message):
        """Oracle: the message; the letters of a string would be words."""
        with pytest.raises(ValueError, match=message):
            words_of("Das ist", 7, split)
