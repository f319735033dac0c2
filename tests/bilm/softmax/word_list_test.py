import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.bilm.softmax.word_list import WordList

SPECIAL = ["<S>", "</S>", "<UNK>"]


def lines() -> st.SearchStrategy[str]:
    """Strings that can be a line of UTF-8, including the line separators of Unicode."""
    characters = st.characters(codec="utf-8", exclude_characters="\n\r")
    separators = st.sampled_from("aé\x85\u2028 ")
    return st.text(characters | separators, min_size=1)


class TestWordList:
    def test_words_are_numbered_by_their_lines(self):
        words = WordList([*SPECIAL, "the", "The"])
        assert len(words) == 5
        assert words.words == ("<S>", "</S>", "<UNK>", "the", "The")
        assert words.indices(["The", "cat", "</S>", "the", "<UNK>"]) == [4, 2, 1, 3, 2]
        in_another_order = WordList(["</S>", "the", "<UNK>", "<S>"])
        assert in_another_order.indices(["<S>", "</S>", "cat"]) == [3, 0, 2]

    @given(st.lists(lines().map(lambda line: "".join(line.split())), unique=True))
    def test_a_file_holds_the_list(self, tmp_path_factory, words):
        path = tmp_path_factory.mktemp("words") / "vocab.txt"
        word_list = WordList(dict.fromkeys([*SPECIAL, *words]))
        word_list.save(path)
        assert WordList.from_file(path).words == word_list.words

    @pytest.mark.parametrize(
        "content",
        [
            b"<S>\n</S>\n<UNK>\na",
            b"\xef\xbb\xbf<S>\r\n</S>\r\n<UNK>\r\na\r\n",
            b"<S>\n</S>\n!!!MAXTERMID\n<UNK>\na\n",
        ],
    )
    def test_files_that_bilm_tf_reads_are_read(self, tmp_path, content):
        (tmp_path / "vocab.txt").write_bytes(content)
        assert WordList.from_file(tmp_path / "vocab.txt").words == (*SPECIAL, "a")

    @pytest.mark.parametrize(
        ("content", "named"),
        [
            (b"the\nof\n", "<S>"),
            (b"<S>\n</S>\n<UNK>\na\nb\na\n", "line 6"),
            (b"<S>\n</S>\n<UNK>\nthe 120\n", "line 4"),
            (b"<S>\n</S>\n<UNK>\na\ncaf\xe9\n", "line 5"),
        ],
    )
    def test_an_error_names_the_wrong_file(self, tmp_path, content, named):
        (tmp_path / "vocab.txt").write_bytes(content)
        with pytest.raises(ValueError, match=r"vocab\.txt") as error:
            WordList.from_file(tmp_path / "vocab.txt")
        assert named in str(error.value)

    def test_words_are_sorted_by_frequency_then_alphabetically(self):
        counts = {"b": 2, "a": 2, "<UNK>": 9, "c": 5, "</S>": 1, "d": 1}
        assert WordList.from_counts(counts).words == (*SPECIAL, "c", "a", "b", "d")
        assert WordList.from_counts(counts, min_count=2).words == (*SPECIAL, "c", "a", "b")
        assert WordList.from_counts(counts, max_words=5).words == (*SPECIAL, "c", "a")
        assert WordList.from_counts({}).words == (*SPECIAL,)
