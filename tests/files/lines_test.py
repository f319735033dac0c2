import bz2
import codecs
import gzip
import lzma
from pathlib import Path

import pytest

from elmo_tasks.files.lines import located, numbered_lines, text_of_file

PACKERS = {".txt": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
CONTENTS = {
    b"": [],
    b"a": ["a"],
    b"a\n\nb": ["a", "", "b"],
    b" a \r\n\tb\r\n": [" a ", "\tb"],
    b"\xef\xbb\xbfa\nb": ["a", "b"],
    # A byte order mark can only be at the start of a file.
    b"a\n\xef\xbb\xbfb": ["a", "\ufeffb"],
    # Old Macs ended lines with a carriage return.
    b"a\rb\r": ["a", "b"],
    b"a\r\rb\rc\n": ["a", "", "b", "c"],
    b"a\rb\n c\n": ["a\rb", " c"],
    # NUL is a character of a line.
    b"a\0b\n": ["a\0b"],
    # These end a line for `str.splitlines`, but not in a file.
    "a\u2028b\x0bc\x85d\n".encode(): ["a\u2028b\x0bc\x85d"],
    codecs.BOM_UTF16_BE + "München\r\n눈\n".encode("utf-16-be"): ["München", "눈"],
}


@pytest.fixture
def write(tmp_path: Path):
    """Writes bytes into a file, compressed according to its suffix, and returns its path."""

    def write(content: bytes, suffix: str = ".txt") -> Path:
        path = tmp_path / f"lines{suffix}"
        path.write_bytes(PACKERS[suffix](content))
        return path

    return write


@pytest.mark.parametrize("suffix", PACKERS)
def test_lines_have_numbers_and_no_line_endings(write, suffix):
    for content, lines in CONTENTS.items():
        path = write(content, suffix)
        expected = list(enumerate(lines, start=1))
        assert list(numbered_lines(path)) == expected
        assert list(numbered_lines(str(path))) == expected


@pytest.mark.parametrize("suffix", PACKERS)
def test_an_error_of_encoding_names_file_and_line(write, suffix):
    for end in ("\n", "\r"):
        path = write(f"a{end}München{end}".encode("latin-1"), suffix)
        with pytest.raises(ValueError, match=rf"lines{suffix}, line 2, byte 2"):
            list(numbered_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_truncated_file_is_an_error_that_names_it(write, suffix):
    path = write(b"a line of text\n" * 1000, suffix)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=f"lines{suffix}"):
        list(numbered_lines(path))


@pytest.mark.parametrize("suffix", PACKERS)
def test_offsets_in_a_text_are_those_in_its_file(write, suffix):
    for content in (
        b"a\r\nb",
        b"\xef\xbb\xbfa\r\nb\n",
        b"a\rb\r",
        b"\xef\xbb\xbfa\rb\r",
        b"",
        b"\xef\xbb\xbf",
    ):
        assert text_of_file(write(content, suffix)) == content.decode().replace("\ufeff", " ")
    text = "München\r\nsang"
    assert text_of_file(write(text.encode("utf-16"), suffix)) == text


def test_an_import_error_is_not_attributed_to_the_file():
    error = ModuleNotFoundError("No module named 'a'")
    with pytest.raises(ModuleNotFoundError) as raised, located("a.json", 1):
        raise error
    assert raised.value is error


def test_an_unnamed_error_is_attributed_to_the_file():
    with pytest.raises(ValueError, match=r"different structure \(b\): a\.json, line 1"):
        with located("a.json", 1):
            raise TypeError("b")
