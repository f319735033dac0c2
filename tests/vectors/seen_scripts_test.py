"""Tests of the scripts that a biLM has seen."""

import shutil
from pathlib import Path

import pytest

from elmo_tasks.vectors.seen_scripts import seen_scripts, unseen_script_notice
from tests.paths import TINY_BILM

KOREAN = "나는 어제 학교에 갔다 ."


@pytest.fixture
def korean_bilm(tmp_path: Path) -> Path:
    """A biLM whose softmax has Korean words, and one Greek word among 200."""
    folder = tmp_path / "bilm"
    shutil.copytree(TINY_BILM, folder)
    words = ["<S>", "</S>", "<UNK>", *["학교에", "the"] * 100, "ω"]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return folder


class TestSeenScripts:
    def test_they_are_those_of_its_words(self, korean_bilm):
        """Oracle: by hand: 600 letters of three scripts, one of them Greek."""
        assert seen_scripts(korean_bilm) == {"HANGUL", "LATIN"}
        assert seen_scripts("small-ko-open") == {"HANGUL"}
        (korean_bilm / "vocab.txt").unlink()
        assert seen_scripts(korean_bilm) is None

    def test_a_file_of_words_that_is_no_text_is_no_error(self, korean_bilm):
        """Oracle: by hand: a word with a carriage return, and one in Latin-1, among Korean ones."""
        words = "학교에 갔다".encode()
        (korean_bilm / "vocab.txt").write_bytes(b"\n".join([words, b"a\rb", b"\xe9", words]))
        assert "HANGUL" in seen_scripts(korean_bilm)

    @pytest.mark.parametrize(
        ("name", "expected"), [("small-open", {"LATIN"}), ("original", {"LATIN"}), ("efml-ko", None)]
    )
    def test_named_ones_are_of_english_or_unknown(self, name, expected):
        """Oracle: by hand; nothing is downloaded."""
        assert seen_scripts(name) == expected


class TestUnseenScriptNotice:
    def test_a_text_of_another_script_is_said(self):
        """Oracle: by hand: 9 of 12 letters."""
        notice = unseen_script_notice("나는 어제 학교에 갔다 NHK", "small-open", "text.txt")
        assert notice.startswith("of the letters in text.txt, 75% are of scripts that the biLM 'small-open' has never")
        assert "most of them Hangul" in notice

    def test_nothing_is_said_of_other_texts(self, korean_bilm):
        """Oracle: by hand: less than half, no letters, a biLM of the script, and one of which nothing is known."""
        for sample in ("the cat 나는 학교에 .", "12 .", ""):
            assert unseen_script_notice(sample, "small-open", "text.txt") is None
        assert unseen_script_notice(KOREAN, korean_bilm, "text.txt") is None
        assert unseen_script_notice("Ω και", korean_bilm, "text.txt") is not None
        assert unseen_script_notice(KOREAN, ("options.json", "weights.hdf5"), "text.txt") is None
