"""Tests of the words of a sentence."""

import numpy as np
import pytest

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
            ([["a"]], r"but sentence 7 has the word \['a'\], a list"),
        ],
    )
    def test_another_object_is_an_error(self, sentence, message):
        """Oracle: the rule, the number and the value in the message."""
        with pytest.raises(ValueError, match=message):
            words_of(sentence, 7)
