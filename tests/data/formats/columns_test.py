import pytest

from elmo_tasks.data.formats.columns import check_count, columns_of, word_of


class TestColumnsOf:
    def test_spaces_and_tabs_separate_alone(self):
        """Oracle: the definition; a word may have a no-break space."""
        assert columns_of("a  b\t \tc\u00a0d ") == ["a", "b", "c\u00a0d"]


class TestWordOf:
    @pytest.mark.parametrize(
        ("column", "word"), [("/.", "."), ("/?", "?"), ("/", "/"), ("and/or", "and/or"), (".", ".")]
    )
    def test_a_slash_is_removed_from_marks_alone(self, column, word):
        """Oracle: the definition."""
        assert word_of(column) == word


class TestCheckCount:
    @pytest.mark.parametrize(
        ("formers", "number"),
        [
            (["0"], "1"),
            (["8", "9"], "10"),
            (["0", "1", "3"], "7"),
            (["3"], "3"),
            (["3", "3"], "3"),
            (["5"], "-"),
            (["-", "-"], "0"),
            ([""], "0"),
            (["0", "-"], "0"),
        ],
    )
    def test_numbers_that_rise_or_are_all_the_same_are_right(self, formers, number):
        """Oracle: no error; a column without numbers says nothing."""
        check_count(formers, number)

    @pytest.mark.parametrize(
        ("formers", "number", "said"),
        [
            (["9", "10"], "0", "0 comes after 9 and 10"),
            (["10"], "0", "0 comes after 10"),
            # A sentence of one word, and the next one.
            (["0", "0"], "1", "1 comes after 0 and 0"),
            (["0", "1"], "1", "1 comes after 0 and 1"),
        ],
    )
    def test_other_numbers_are_an_error(self, formers, number, said):
        """Oracle: the message, with the numbers and the place."""
        with pytest.raises(ValueError, match=rf"^a\.conll:3: the numbers .* must rise, but {said}: put an empty line"):
            check_count(formers, number, "a.conll:3: ")
