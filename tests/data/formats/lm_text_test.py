import gzip
import logging
import lzma
import os
import re
import unicodedata
from itertools import chain
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.data import LmText

SENTENCES = [["The", "cat", "sat", "."], ["Ja"], ["«", "Ça", "va", "?", "»"]]
LINES = b"The cat sat .\nJa\n" + "« Ça va ? »\n".encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "text.txt"


class TestLmText:
    @pytest.mark.parametrize(
        ("name", "pack"),
        [("text", bytes), ("text.txt", bytes), ("text.txt.gz", gzip.compress), ("text.txt.xz", lzma.compress)],
    )
    def test_plain_and_compressed_files_are_read(self, tmp_path, name, pack):
        """Oracle: by hand."""
        (tmp_path / name).write_bytes(pack(LINES))
        text = LmText(tmp_path / name)
        assert list(text) == SENTENCES
        assert list(text) == SENTENCES, "the second pass"

    def test_a_folder_is_its_files_by_name_without_hidden_ones(self, tmp_path):
        """Oracle: by hand."""
        for name in ("b.txt", "a.txt", ".hidden"):
            (tmp_path / name).write_text(f"{name}\n")
        (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"c\n"))
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "d.txt").write_text("d\n")
        assert list(LmText(tmp_path)) == [["a.txt"], ["b.txt"], ["c"]]
        assert list(LmText(f"{tmp_path}/*.txt")) == [["a.txt"], ["b.txt"]]
        assert list(LmText(f"{tmp_path}/**/*.txt")) == [["a.txt"], ["b.txt"], ["d"]]

    def test_a_pattern_may_match_folders_and_be_in_one_with_brackets(self, tmp_path):
        """Oracle: the sentences of a file and of the files of a folder, once each."""
        folder = tmp_path / "data[1]" / "text"
        (folder / "train").mkdir(parents=True)
        for name, word in (("train.txt", "a"), ("train/1.txt", "b"), ("train/2.txt", "c"), ("train/.d", "d")):
            (folder / name).write_text(f"{word}\n")
        assert sorted(LmText(folder / "train*")) == [["a"], ["b"], ["c"]]
        assert sorted(LmText(folder / "**")) == sorted(LmText(f"{folder}/./**")) == [["a"], ["b"], ["c"]]
        assert sorted(LmText(folder.parent / "*" / "*.txt")) == [["a"]]

    def test_a_file_whose_name_looks_like_a_pattern_is_that_file(self, tmp_path):
        """Oracle: by hand; as a pattern the name matches `a.txt`."""
        for name in ("[a].txt", "a.txt"):
            (tmp_path / name).write_text(f"{name}\n")
        assert list(LmText(tmp_path / "[a].txt")) == [["[a].txt"]]

    @pytest.mark.parametrize("name", ["none.txt", "*.none", "empty"])
    def test_a_path_without_files_is_refused_at_once(self, tmp_path, name):
        """Oracle: the message names the path."""
        (tmp_path / "empty").mkdir()
        with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path / name))):
            LmText(tmp_path / name)

    @pytest.mark.parametrize(
        "content",
        [
            LINES.replace(b"\n", b"\r\n"),
            LINES.rstrip(b"\n"),
            b"\xef\xbb\xbf" + LINES,
            b"\n \t\n" + LINES.replace(b"\n", b" \n\n") + b"\n\n",
            LINES.replace(b" ", b"\t  "),
            LINES.replace(b" ", "\N{NO-BREAK SPACE}".encode()),
        ],
        ids=["CRLF", "no final newline", "byte order mark", "empty lines", "tabs", "no-break spaces"],
    )
    def test_white_space_separates_words_and_is_in_none(self, path, content):
        """Oracle: the same sentences."""
        path.write_bytes(content)
        assert list(LmText(path)) == SENTENCES

    def test_a_long_line_is_split_evenly(self, path):
        """Oracle: by hand: 5000 words are 20 times 250; 5 with at most 4 are 2 and 3."""
        words = [str(n) for n in range(5000)]
        path.write_text(" ".join(words) + "\n")
        pieces = list(LmText(path, max_words=250))
        assert [len(piece) for piece in pieces] == [250] * 20
        assert list(chain.from_iterable(pieces)) == words
        path.write_text("a b c d e\n")
        assert list(LmText(path, max_words=4)) == [["a", "b"], ["c", "d", "e"]]

    def test_a_long_line_is_skipped_if_asked(self, path):
        """Oracle: by hand."""
        path.write_text("a b c\nd e\n")
        assert list(LmText(path, max_words=2, long_lines="skip")) == [["d", "e"]]

    def test_irregular_lines_are_counted_and_logged_once(self, path, caplog):
        """Oracle: by hand."""
        path.write_bytes(b"a\n\na b c\n\n\xff\n")
        text = LmText(path, max_words=2, errors="replace")
        with caplog.at_level(logging.INFO, logger="elmo_tasks"):
            assert [len(list(text)) for _ in range(2)] == [4, 4]
        (record,) = caplog.records
        assert record.getMessage() == (
            f"{path}: 4 sentences; irregular lines: 2 empty (skipped), 1 of more than 2 words (split), "
            "1 with bytes replaced that are not UTF-8"
        )

    def test_a_text_is_put_into_nfc_if_asked(self, path):
        """Oracle: `unicodedata`."""
        nfc, nfd = (unicodedata.normalize(form, "눈이 café") for form in ("NFC", "NFD"))
        path.write_text(f"{nfd}\n", encoding="utf-8")
        assert list(LmText(path)) == [nfd.split()]
        assert list(LmText(path, nfc=True)) == [nfc.split()]

    def test_a_line_that_is_not_utf8_is_an_error_with_file_and_line_or_replaced(self, path):
        """Oracle: by hand: byte 0xe9 is é in Latin-1."""
        path.write_bytes(b"a\n\nb caf\xe9\n")
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line 3: .* byte 6 of this line is 0xe9"):
            list(LmText(path))
        assert list(LmText(path, errors="replace")) == [["a"], ["b", "caf\N{REPLACEMENT CHARACTER}"]]

    @pytest.mark.parametrize("errors", ["strict", "replace"])
    @pytest.mark.parametrize(
        ("content", "rest"),
        [
            (LINES.replace(b"\n", b"\r"), "line 1: .* carriage return alone"),
            (b"a\n" + b"\0" * 100_000, "line 2: .* character NUL"),
            ("a b\nc\n".encode("utf-16-le"), "line 1: .* character NUL"),
            (b"a\n" + b"\xff\r\xff\0\n", "line 2: "),
        ],
        ids=["carriage returns", "NUL", "UTF-16", "several"],
    )
    def test_what_is_no_text_is_an_error_with_file_and_line(self, path, errors, content, rest):
        """Oracle: the message; words were made of these."""
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, {rest}"):
            list(LmText(path, errors=errors))

    def test_a_sentence_between_boundaries_is_an_error_with_file_and_line(self, path):
        """Oracle: the message; one of the two words alone is a word."""
        path.write_text("<S> a\nb </S>\n<S> c </S>\n")
        with pytest.raises(
            ValueError, match=r"text.txt:3: .* between the boundaries <S> and </S>, which the biLM adds"
        ):
            list(LmText(path))

    def test_a_pipe_is_no_text(self, tmp_path):
        """Oracle: the message, and that the other file of the folder is read."""
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ConfigurationError, match="nothing is found"):
            LmText(tmp_path / "pipe")
        (tmp_path / "text").write_bytes(LINES)
        assert list(LmText(tmp_path)) == SENTENCES

    def test_a_damaged_file_is_an_error_with_its_name(self, tmp_path):
        """Oracle: the message, for a file that is cut off."""
        path = tmp_path / "text.gz"
        path.write_bytes(gzip.compress(LINES * 1000)[:-20])
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, after line \d+: .* can be decompressed"):
            list(LmText(path))

    @pytest.mark.parametrize(
        ("content", "found"), [("", "but is empty"), ("\n \n", r"but has no other lines than 2 empty \(skipped\)")]
    )
    def test_a_text_without_a_sentence_is_an_error(self, path, content, found):
        """Oracle: by hand."""
        path.write_text(content)
        with pytest.raises(ValueError, match=f"must hold at least one sentence, .*{found}$"):
            list(LmText(path))

    @pytest.mark.parametrize("options", [{"errors": "ignore"}, {"long_lines": "cut"}, {"max_words": 0}])
    def test_unknown_options_are_refused(self, path, options):
        """Oracle: the message names the option."""
        path.write_bytes(LINES)
        with pytest.raises(ConfigurationError, match=next(iter(options))):
            LmText(path, **options)
