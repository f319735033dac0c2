"""Tests of the lines of text files."""

import gzip
import lzma
import os
import re
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from elmo_tasks.files import text_lines
from elmo_tasks.files.text_lines import (
    MAX_LINE_BYTES,
    byte_lines,
    checked_text,
    decoded,
    numbered_lines,
    opened,
    whole_text,
)

PACKERS = {".txt": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


@pytest.fixture
def write(tmp_path: Path):
    """Writes bytes into a file, compressed as its name says, and gives its path."""

    def write(content: bytes, suffix: str = ".txt") -> str:
        path = tmp_path / f"lines{suffix}"
        path.write_bytes(PACKERS[suffix](content))
        return str(path)

    return write


class TestNumberedLines:
    @pytest.mark.parametrize("suffix", PACKERS)
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
    def test_lines_come_with_their_numbers_and_without_their_ends(self, write, suffix, content, lines):
        """Oracle: by hand; a `str` and a `Path`."""
        path = write(content, suffix)
        assert list(numbered_lines(path)) == list(numbered_lines(Path(path))) == list(enumerate(lines, start=1))

    @pytest.mark.parametrize("suffix", PACKERS)
    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            (b"a\nb\xffc\n", "line 2: the file must be UTF-8, but byte 2 of this line is 0xff"),
            (b"\xef\xbb\xbfa\nb\xc3", "line 2: the file must be UTF-8, but byte 2 of this line is 0xc3"),
            (b"a\rb\r", "line 1: lines must end with a line feed"),
            (b"a\r\nb\rc\r\n", "line 2: lines must end with a line feed"),
            (b"a\nb\0\n", "line 2: a line must not have the character NUL, but this one has it after 1 others"),
            ("ab\n".encode("utf-16-be"), "line 1: a line must not have the character NUL, .* UTF-16, with iconv"),
            ("ab\n".encode("utf-16"), "line 1: the file must be UTF-8"),
        ],
    )
    def test_a_broken_line_is_an_error_with_file_and_line(self, write, suffix, content, rule):
        """Oracle: the rule."""
        path = write(content, suffix)
        with pytest.raises(ValueError, match=rule) as error:
            list(numbered_lines(path))
        assert str(error.value).startswith(f"{path}, line ")

    def test_the_lines_before_a_broken_one_are_not_lost(self, write):
        """Oracle: by hand: a file is read line by line."""
        lines = numbered_lines(write(b"a\nb\n\xff"))
        assert [next(lines), next(lines)] == [(1, "a"), (2, "b")]

    @pytest.mark.parametrize("suffix", [".gz", ".xz"])
    @pytest.mark.parametrize(
        "damage", [lambda data: data[:-20], lambda data: b"text\n", lambda data: data[:-9] + b"x" * 9]
    )
    def test_a_damaged_file_is_an_error_with_its_name(self, write, suffix, damage):
        """Oracle: a file that is cut off, one that is not compressed at all, and one with other bytes at its end."""
        path = Path(write(b"a b c\n" * 1000, suffix))
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(
            ValueError, match=rf"{re.escape(str(path))}, after line \d+: .*{suffix} must be one that can"
        ):
            list(numbered_lines(path))

    def test_the_name_may_be_in_capitals(self, tmp_path):
        """Oracle: the lines that were compressed."""
        (tmp_path / "A.TXT.GZ").write_bytes(gzip.compress(b"a\n"))
        assert list(numbered_lines(tmp_path / "A.TXT.GZ")) == [(1, "a")]

    def test_a_file_that_is_not_there_is_an_error_of_the_system(self, tmp_path):
        """Oracle: the error of `open`."""
        with pytest.raises(FileNotFoundError, match=r"none\.gz"):
            list(numbered_lines(tmp_path / "none.gz"))


class TestByteLines:
    @pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", partial(lzma.compress, preset=0))])
    def test_a_line_that_would_fill_the_memory_is_an_error(self, tmp_path, suffix, pack):
        """Oracle: the message, and the memory that Python has for it; here some kilobytes hold 64 megabytes."""
        path = tmp_path / f"lines{suffix}"
        path.write_bytes(pack(b"a\n" + b"x" * 2**26))
        assert path.stat().st_size < 2**17
        tracemalloc.start()
        with pytest.raises(ValueError, match=f"{re.escape(str(path))}, line 2: a line must be shorter than 16 MiB"):
            list(byte_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_LINE_BYTES
        tracemalloc.stop()

    def test_a_line_may_be_long(self, write):
        """Oracle: by hand: the longest with its end, and one byte more."""
        longest = b"x" * (MAX_LINE_BYTES - 2) + b"\n"
        assert list(byte_lines(write(longest + b"y"))) == [(1, longest), (2, b"y")]
        with pytest.raises(ValueError, match="line 1: a line must be shorter than 16 MiB"):
            list(byte_lines(write(b"x" + longest)))

    @pytest.mark.parametrize("suffix", PACKERS)
    def test_lines_are_as_they_are(self, write, suffix):
        """Oracle: by hand: only the mark at the beginning is dropped."""
        path = write(b"\xef\xbb\xbfa\rb\r\n\xff\n\xef\xbb\xbfc", suffix)
        assert list(byte_lines(path)) == [(1, b"a\rb\r\n"), (2, b"\xff\n"), (3, b"\xef\xbb\xbfc")]


class TestDecoded:
    def test_a_line_is_without_its_end(self):
        """Oracle: by hand."""
        assert decoded("ç\rd \r\n".encode(), "file", 1) == "ç\rd "

    def test_another_encoding_is_an_error(self):
        """Oracle: Latin-1: the message has file, line, byte and remedy."""
        with pytest.raises(ValueError, match=r"file, line 3: the file must be UTF-8, but byte 2 .* 0xe7: .*iconv"):
            decoded("aç".encode("latin-1"), "file", 3)


class TestCheckedText:
    def test_a_line_is_without_its_end(self):
        """Oracle: by hand."""
        assert checked_text("ç d \r\n".encode(), "file", 1) == "ç d "


class TestWholeText:
    @pytest.mark.parametrize("suffix", PACKERS)
    def test_a_file_is_one_text(self, write, suffix):
        """Oracle: by hand: only a byte order mark is dropped."""
        assert whole_text(write("\ufeffa\r\n\rç\n".encode(), suffix)) == "a\r\n\rç\n"
        assert whole_text(write(b"", suffix)) == ""

    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            (b"a\r\n\xff", "line 2: the file must be UTF-8, but byte 1 of this line is 0xff"),
            (b"a\rb\nc\0", "line 2: a line must not have the character NUL, but this one has it after 1"),
            ("a".encode("utf-16-le"), "line 1: a line must not have the character NUL"),
        ],
    )
    def test_what_is_no_text_is_an_error_with_file_and_line(self, write, content, rule):
        """Oracle: the rule."""
        path = write(content)
        with pytest.raises(ValueError, match=f"{re.escape(path)}, {rule}"):
            whole_text(path)

    def test_a_compressed_file_has_a_limit_and_a_plain_one_has_none(self, write, monkeypatch):
        """Oracle: the message; a lower limit stands for that of a gigabyte."""
        monkeypatch.setattr(text_lines, "_MAX_FILE_BYTES", 10)
        assert whole_text(write(b"x" * 11)) == "x" * 11
        assert whole_text(write(b"x" * 10, ".gz")) == "x" * 10
        path = write(b"x" * 11, ".gz")
        with pytest.raises(ValueError, match=f"{re.escape(path)} must be at most .* when it is decompressed"):
            whole_text(path)


class TestOpened:
    @pytest.mark.parametrize("read", [lambda path: list(numbered_lines(path)), whole_text])
    def test_pipes_and_devices_are_refused(self, tmp_path, read: Callable[[str], object]):
        """Oracle: the message; a pipe that nothing is written to was waited for without end."""
        os.mkfifo(tmp_path / "pipe.txt")
        for path in (str(tmp_path / "pipe.txt"), "/dev/zero"):
            with pytest.raises(ValueError, match=f"{re.escape(path)} must be a file, .* a pipe, a device or a socket"):
                read(path)

    @pytest.mark.parametrize("suffix", PACKERS)
    def test_the_bytes_are_those_that_were_compressed(self, write, suffix):
        """Oracle: the bytes."""
        with opened(write(b"\xef\xbb\xbfa\r\n\xff", suffix)) as file:
            assert file.read() == b"\xef\xbb\xbfa\r\n\xff"

    def test_a_damaged_file_is_an_error_with_its_name(self, write):
        """Oracle: the message; the file is cut off."""
        path = Path(write(b"a", ".gz"))
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: a file whose name ends with \.gz"):
            with opened(path) as file:
                file.read()
