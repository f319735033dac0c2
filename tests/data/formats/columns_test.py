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
        ("former", "number"), [("0", "1"), ("9", "10"), ("3", "3"), ("5", "-"), ("-", "0"), ("", "0")]
    )
    def test_numbers_that_do_not_fall_are_right(self, former, number):
        """Oracle: no error; a column without numbers says nothing."""
        check_count(former, number)

    def test_a_number_that_falls_is_an_error(self):
        """Oracle: the message, with both numbers and the place."""
        with pytest.raises(ValueError, match=r"^a\.conll:3: the numbers .* but 0 comes after 10: put an empty line"):
            check_count("10", "0", "a.conll:3: ")
