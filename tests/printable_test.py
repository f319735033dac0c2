"""Tests of text that is shown."""

import json
import unicodedata

import pytest

from elmo_tasks.printable import one_line, printable, printable_lines


class TestPrintable:
    def test_no_control_character_stays(self):
        """Oracle: Unicode's categories: of all characters those of controls, and halves of pairs, are replaced."""
        text = "".join(map(chr, range(0x110000)))
        assert not {unicodedata.category(character) for character in printable(text)} & {"Cc", "Cs", "Zl", "Zp"}

    def test_what_people_write_stays(self):
        """Oracle: by hand: letters, an emoji of several characters, and marks of Hebrew and Persian."""
        for text in ("café 語 Ω", "👩‍🚀", "שלום\u200f!", "می\u200cخواهم", "a\u00adb"):
            assert printable(text) == text

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("\x1b[2Ja", r"\u001b[2Ja"),
            ("a\n\tb", r"a\u000a\u0009b"),
            ("\u202eabc", r"\u202eabc"),
            ("\ud800", r"\ud800"),
        ],
    )
    def test_others_are_named(self, text, expected):
        """Oracle: by hand."""
        assert printable(text) == expected

    def test_json_stays_the_same(self):
        """Oracle: the JSON module; line feeds between values stay."""
        value = {"a\x1b": ["\x7f\x9b\u2028", "é\n\ud800"]}
        text = printable_lines(json.dumps(value, ensure_ascii=False, indent=1))
        assert json.loads(text) == value and "\n" in text

    def test_an_error_is_one_line(self):
        """Oracle: by hand."""
        assert one_line(ValueError("no\n  file \x1b[1m'é'")) == r"no file \u001b[1m'é'"
