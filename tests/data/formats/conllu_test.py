import pytest

from elmo_tasks.data.formats.conllu import conllu_sentences

BEGIN = "# text\n1\tDogs" + "\t_" * 8 + "\n"


class TestConlluSentences:
    def test_sentences_and_words_have_their_places(self, tmp_path):
        """Oracle: the numbers of the lines by hand; a multiword token and an empty node are no words."""
        lines = ["1-2", "1", "2", "2.1", "", "", "1"]
        path = tmp_path / "a.conllu"
        path.write_text("# text\n" + "".join(line + "\tx" * 9 + "\n" if line else "\n" for line in lines))
        found = [(place, [(number, columns[0]) for number, columns in rows]) for place, rows in conllu_sentences(path)]
        assert found == [(f"{path}, line 3", [(3, "1"), (4, "2")]), (f"{path}, line 8", [(8, "1")])]

    @pytest.mark.parametrize(
        "ids",
        [["1-4", "1", "2-3", "2", "3"], ["1-3", "1", "2-3", "2", "3"], ["1-2", "1-2", "1", "2"], ["1-2", "1", "2-3"]],
    )
    def test_ranges_that_overlap_are_errors(self, tmp_path, ids):
        """Oracle: the message, at the second range."""
        path = tmp_path / "a.conllu"
        path.write_text("".join(line + "\tx" * 9 + "\n" for line in ids))
        number = 1 + max(place for place, each in enumerate(ids) if "-" in each)
        with pytest.raises(ValueError, match=rf"a\.conllu, line {number}: a multiword token must follow the words of"):
            list(conllu_sentences(path))

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("2\tbark", "10 columns with tabs between them, but this one has 2: '2'"),
            ("3" + "\tx" * 9, "2 comes here, but here is '3'"),
            ("02" + "\tx" * 9, "here is '02'"),
            ("2\t " + "\tx" * 8, "must have a form in the second column"),
            ("7-9" + "\tx" * 9, "must stand before its first word, which is 2 here, .* but is '7-9'"),
            ("2-2" + "\tx" * 9, "have two words at least, but is '2-2'"),
            ("2-3" + "\tx" * 9, "its last one is 3, and the sentence has 1: is the file complete"),
            ("2-3" + "\tx" * 9 + "\n2" + "\tx" * 9, "its last one is 3, and the sentence has 2"),
        ],
    )
    def test_another_line_is_an_error_with_its_number(self, tmp_path, line, message):
        """Oracle: the message."""
        path = tmp_path / "a.conllu"
        path.write_text(BEGIN + line)
        with pytest.raises(ValueError, match=rf"a\.conllu, line 3: .*{message}"):
            list(conllu_sentences(path))
