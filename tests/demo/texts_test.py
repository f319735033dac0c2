import pytest

from elmo_tasks.demo.texts import MAX_CHARACTERS, MAX_CHARACTERS_PER_WORD, MAX_SENTENCES, MAX_WORDS, Texts, checked_text


class TestCheckedText:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "the sentence must have at least one word, but is empty: type one"),
            (" \n ", "but is empty"),
            ("word " * 10_000, f"must have at most {MAX_WORDS} words, but has 10,000: shorten it"),
            ("x" * (MAX_CHARACTERS + 1), "must have at most 20,000 characters, but has 20,001: shorten it"),
            (["a"], "must be a text, but is of the type list"),
            (None, "must be a text, but is of the type NoneType"),
            ("a \ud800 b", "half a pair of UTF-16"),
        ],
    )
    def test_a_bad_text_is_refused_in_a_sentence(self, text, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            checked_text("the sentence", text)

    def test_a_text_may_be_as_long_as_the_limit(self):
        """Oracle: the text itself."""
        text = "word " * MAX_WORDS
        assert checked_text("the sentence", text) == text


class TestTexts:
    def test_sentences_are_split_by_the_rules_of_their_language(self):
        """Oracle: the words by hand; spaCy's own rules for Korean need another program, and are not asked."""
        assert Texts().words("it", "She can't play.") == ["She", "ca", "n't", "play", "."]
        assert Texts("ko").words("it", "눈이 내렸다.") == ["눈이", "내렸다", "."]

    def test_words_are_counted_after_they_are_split(self):
        """Oracle: the bound; marks without spaces between them are words of their own."""
        with pytest.raises(ValueError, match=rf"at most {MAX_WORDS} words, but has {MAX_WORDS + 1}"):
            Texts().words("it", f"{'(' * MAX_WORDS} (")

    def test_a_long_text_without_white_space_is_refused(self):
        """Oracle: the bound; spaCy's rules take hours for the longest."""
        Texts().words("it", "a" * MAX_CHARACTERS_PER_WORD)
        with pytest.raises(ValueError, match=r"it must have at most 200 characters without white space, but has 201"):
            Texts().words("it", f"a {'!' * (MAX_CHARACTERS_PER_WORD + 1)} b")

    def test_the_number_of_sentences_is_limited(self):
        """Oracle: the messages, with the number of the sentence."""
        with pytest.raises(ValueError, match="at least one sentence"):
            Texts().sentences([])
        with pytest.raises(ValueError, match=f"at most {MAX_SENTENCES} sentences, but there are 13"):
            Texts().sentences(["a"] * (MAX_SENTENCES + 1))
        with pytest.raises(ValueError, match="sentence 2 must have at least one word"):
            Texts().sentences(["a", ""])

    def test_a_language_that_does_not_exist_is_refused_at_once(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="language must be a code that spaCy knows"):
            Texts("xyz")
