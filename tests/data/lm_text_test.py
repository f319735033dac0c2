import gzip
import lzma
import re
import unicodedata
from itertools import chain

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.data import LmText

SENTENCES = [["The", "cat", "sat", "."], ["Ja"], ["«", "Ça", "va", "?", "»"]]
LINES = b"The cat sat .\nJa\n" + "« Ça va ? »\n".encode()


class TestLmText:
    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("text", bytes),
            ("text.txt", bytes),
            ("text.txt.gz", gzip.compress),
            ("text.txt.xz", lzma.compress),
        ],
    )
    def test_plain_and_compressed_files_are_read(self, tmp_path, name, pack):
        (tmp_path / name).write_bytes(pack(LINES))
        text = LmText(tmp_path / name)
        assert list(text) == SENTENCES
        assert list(text) == SENTENCES, "the second pass"

    def test_a_folder_is_read_in_file_name_order_without_hidden_files(self, tmp_path):
        for name in ("b.txt", "a.txt", ".hidden"):
            (tmp_path / name).write_text(f"{name}\n")
        (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"c\n"))
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "d.txt").write_text("d\n")
        assert list(LmText(tmp_path)) == [["a.txt"], ["b.txt"], ["c"]]
        assert list(LmText(f"{tmp_path}/*.txt")) == [["a.txt"], ["b.txt"]]
        assert list(LmText(f"{tmp_path}/**/*.txt")) == [["a.txt"], ["b.txt"], ["d"]]

    def test_a_file_name_that_looks_like_a_pattern_is_taken_literally(self, tmp_path):
        """As a pattern, the name would match `a.txt`."""
        for name in ("[a].txt", "a.txt"):
            (tmp_path / name).write_text(f"{name}\n")
        assert list(LmText(tmp_path / "[a].txt")) == [["[a].txt"]]

    @pytest.mark.parametrize("name", ["none.txt", "*.none", "empty"])
    def test_a_path_without_files_is_refused_immediately(self, tmp_path, name):
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
        ids=[
            "CRLF",
            "no final newline",
            "byte order mark",
            "empty lines",
            "tabs",
            "no-break spaces",
        ],
    )
    def test_white_space_separates_words_and_is_not_part_of_them(self, path, content):
        path.write_bytes(content)
        assert list(LmText(path)) == SENTENCES

    def test_a_long_line_is_split_evenly(self, path):
        words = [str(n) for n in range(5000)]
        path.write_text(" ".join(words) + "\n")
        pieces = list(LmText(path))
        assert [len(piece) for piece in pieces] == [250] * 20
        assert list(chain.from_iterable(pieces)) == words
        path.write_text(" ".join(words[:601]) + "\n")
        assert list(map(len, LmText(path))) == [200, 200, 201]

    def test_a_text_is_normalised_to_nfc_unless_switched_off(self, path):
        nfc, nfd = (unicodedata.normalize(form, "눈이 café") for form in ("NFC", "NFD"))
        path.write_text(f"{nfd}\n", encoding="utf-8")
        assert list(LmText(path)) == [nfc.split()]
        assert list(LmText(path, nfc=False)) == [nfd.split()]
