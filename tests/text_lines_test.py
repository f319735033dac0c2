from pathlib import Path

import pytest

from elmo_tasks.text_lines import numbered_lines


@pytest.fixture
def write(tmp_path: Path):
    """Writes bytes into a file and gives its path."""

    def write(content: bytes) -> str:
        path = tmp_path / "lines.txt"
        path.write_bytes(content)
        return str(path)

    return write


class TestNumberedLines:
    @pytest.mark.parametrize(
        ("content", "lines"),
        [
            (b"", []),
            (b"a", ["a"]),
            (b"a\n", ["a"]),
            (b"a\n\nb", ["a", "", "b"]),
            (b" a \r\n\tb\r\n", [" a ", "\tb"]),
            (b"\xef\xbb\xbfa\nb", ["a", "b"]),
            # Only the file's first bytes can be a mark of their order.
            (b"a\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
            # These end lines for `str.splitlines`, not in a file.
            ("a\u2028b\x0bc\x85d\n".encode(), ["a\u2028b\x0bc\x85d"]),
        ],
    )
    def test_lines_come_with_their_numbers_and_without_their_ends(self, write, content, lines):
        """Oracle: by hand."""
        assert list(numbered_lines(write(content))) == list(enumerate(lines, start=1))

    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            (b"a\nb\xffc\n", "line 2: the file must be UTF-8, but byte 2 of this line is 0xff"),
            (b"\xef\xbb\xbfa\nb\xc3", "line 2: the file must be UTF-8, but byte 2 of this line is 0xc3"),
            (b"a\rb\r", "line 1: lines must end with a line feed"),
            (b"a\r\nb\rc\r\n", "line 2: lines must end with a line feed"),
        ],
    )
    def test_a_broken_line_is_an_error_with_file_and_line(self, write, content, rule):
        """Oracle: the rule."""
        path = write(content)
        with pytest.raises(ValueError, match=rule) as error:
            list(numbered_lines(path))
        assert str(error.value).startswith(f"{path}, line ")

    def test_the_lines_before_a_broken_one_are_not_lost(self, write):
        """Oracle: by hand: a file is read line by line."""
        lines = numbered_lines(write(b"a\nb\n\xff"))
        assert [next(lines), next(lines)] == [(1, "a"), (2, "b")]
