import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.bilm.softmax.word_list import WordList

SPECIAL = ["<S>", "</S>", "<UNK>"]


def lines() -> st.SearchStrategy[str]:
    """Strings that can be a line of UTF-8, including the line separators of Unicode."""
    return st.text(
        st.characters(codec="utf-8", exclude_characters="\n\r") | st.sampled_from("aé\x85\u2028 "), min_size=1
    )


@pytest.fixture
def vocabulary(tmp_path):
    """Writes a `vocab.txt` and returns its path."""

    def write(content: bytes):
        path = tmp_path / "vocab.txt"
        path.write_bytes(content)
        return path

    return write


class TestWordList:
    def test_words_are_numbered_by_their_lines(self):
        """Oracle: by hand."""
        words = WordList([*SPECIAL, "the", "The"])
        assert len(words) == 5
        assert words.words == ("<S>", "</S>", "<UNK>", "the", "The")
        assert [words.index(word) for word in words.words] == [0, 1, 2, 3, 4]
        assert words.indices(["The", "cat", "</S>", "the", "<UNK>"]) == [4, 2, 1, 3, 2]
        assert words.index("cat") == 2

    def test_the_special_words_may_stand_elsewhere(self):
        """Oracle: by hand."""
        words = WordList(["</S>", "the", "<UNK>", "<S>"])
        assert words.indices(["<S>", "</S>", "cat"]) == [3, 0, 2]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["<S>", "a"], r"must hold <S>, </S>, <UNK>, but </S>, <UNK> is missing: add a line with each"),
            ([], r"<S>, </S>, <UNK> is missing"),
            ([*SPECIAL, "a", "b", "a"], r"^line 6: a word must occur once, but 'a' is on line 4 too"),
            ([*SPECIAL, "a", "!!!MAXTERMID", "a"], r"^line 6: a word must occur once, but 'a' is on line 4 too"),
            ([*SPECIAL, ""], r"^line 4: a word must not be empty"),
            ([*SPECIAL, "a\nb"], r"^line 4: a word must not hold the end of a line, but is 'a\\nb'"),
            ([*SPECIAL, "a\r"], r"^line 4: a word must not hold the end of a line, but is 'a\\r'"),
            ([*SPECIAL, "\ud800"], r"^line 4: a word must be Unicode, but is '\\ud800'"),
        ],
    )
    def test_what_is_no_word_list_is_refused(self, words, message):
        """Oracle: the message, which must state the line and the word."""
        with pytest.raises(ValueError, match=message):
            WordList(words)


class TestFiles:
    @settings(max_examples=50)
    @given(st.lists(lines(), unique=True))
    def test_a_list_comes_back(self, tmp_path_factory, words):
        """Oracle: the list that was written."""
        path = tmp_path_factory.mktemp("words") / "vocab.txt"
        before = WordList(dict.fromkeys([*SPECIAL, *words]))
        before.save(path)
        assert WordList.from_file(path).words == before.words

    def test_the_format_is_bilm_tfs(self, tmp_path):
        """Oracle: the bytes, by hand."""
        WordList([*SPECIAL, "é"]).save(tmp_path / "vocab.txt")
        assert (tmp_path / "vocab.txt").read_bytes() == b"<S>\n</S>\n<UNK>\n\xc3\xa9\n"

    @pytest.mark.parametrize(
        "content",
        [
            b"<S>\n</S>\n<UNK>\na",
            b"\xef\xbb\xbf<S>\r\n</S>\r\n<UNK>\r\na\r\n",
            b"<S>\n</S>\n!!!MAXTERMID\n<UNK>\na\n",
        ],
    )
    def test_what_bilm_tf_reads_is_read(self, vocabulary, content):
        """Oracle: by hand: no last end of line, byte order mark and line ends of Windows, the line bilm-tf ignores."""
        assert WordList.from_file(vocabulary(content)).words == (*SPECIAL, "a")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"the\nof\n", r"a word list must hold .*, but <S>, </S>, <UNK> is missing"),
            (b"<S>\n</S>\n<UNK>\n\na\n", r"line 4: a word must not be empty"),
            (b"<S>\n</S>\n<UNK>\na\n\n", r"line 5: a word must not be empty"),
            (b"<S>\r\n</S>\r\n<UNK>\r\n\r\n", r"line 4: a word must not be empty"),
            (b"<S>\n</S>\n<UNK>\na\nb\na\n", r"line 6: a word must occur once, but 'a' is on line 4 too"),
            (b"<S>\n</S>\n<UNK>\na\ncaf\xe9\n", r"line 5: the file must be UTF-8, but byte 4 of this line is 0xe9"),
            (b"", r"a word list must hold .*, but <S>, </S>, <UNK> is missing"),
        ],
    )
    def test_another_file_is_refused(self, vocabulary, content, message):
        """Oracle: the message, which must state the file, the line and the rule."""
        path = vocabulary(content)
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}[:,] {message}"):
            WordList.from_file(path)

    def test_a_missing_file_is_an_error_of_the_system(self, tmp_path):
        """Oracle: the exception."""
        with pytest.raises(FileNotFoundError):
            WordList.from_file(tmp_path / "none")


class TestFromCounts:
    def test_words_come_by_frequency_then_by_the_alphabet(self):
        """Oracle: by hand."""
        counts = {"b": 2, "a": 2, "<UNK>": 9, "c": 5, "</S>": 1, "d": 1}
        assert WordList.from_counts(counts).words == (*SPECIAL, "c", "a", "b", "d")
        assert WordList.from_counts(counts, min_count=2).words == (*SPECIAL, "c", "a", "b")
        assert WordList.from_counts(counts, max_words=5).words == (*SPECIAL, "c", "a")
        assert WordList.from_counts(counts, max_words=3, min_count=2).words == (*SPECIAL,)
        assert WordList.from_counts({}).words == (*SPECIAL,)

    @given(st.dictionaries(lines(), st.integers(1, 4)), st.integers(1, 5), st.none() | st.integers(3, 9), st.randoms())
    def test_the_order_of_the_text_does_not_matter(self, counts, min_count, max_words, random):
        """Oracle: the same words in another order; `Counter.most_common` for how often they occur."""
        shuffled = list(counts.items())
        random.shuffle(shuffled)
        options = dict(min_count=min_count, max_words=max_words)
        words = WordList.from_counts(counts, **options).words
        assert WordList.from_counts(dict(shuffled), **options).words == words
        ordinary = Counter({word: counts[word] for word in counts if word not in (*SPECIAL, "!!!MAXTERMID")})
        expected = [count for _, count in ordinary.most_common() if count >= min_count]
        assert [counts[word] for word in words[3:]] == expected[: None if max_words is None else max_words - 3]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (dict(max_words=2), "max_words must be at least 3, the number of special words, but is 2"),
            (dict(min_count=0), "min_count must be at least 1, but is 0"),
        ],
    )
    def test_numbers_that_cannot_be_are_refused(self, options, message):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=message):
            WordList.from_counts({"a": 1}, **options)
