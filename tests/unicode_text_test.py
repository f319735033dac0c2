"""Tests of Unicode forms and scripts."""

import argparse
import unicodedata

import pytest

from elmo_tasks.unicode_text import add_nfc_argument, in_nfc, letters_by_script

NFC, NFD = (unicodedata.normalize(form, "눈이 café") for form in ("NFC", "NFD"))


class TestAddNfcArgument:
    @pytest.mark.parametrize(("given", "expected"), [([], True), (["--no-nfc"], False), (["--nfc"], True)])
    def test_it_is_on_unless_it_shall_not_be(self, given, expected):
        """Oracle: by hand."""
        parser = argparse.ArgumentParser()
        add_nfc_argument(parser)
        assert parser.parse_args(given).nfc is expected


class TestInNfc:
    def test_texts_are_normalised_wherever_they_are(self):
        """Oracle: `unicodedata` of each text; numbers, keys and what is no text stay."""
        assert NFC != NFD
        value = {"sentence": NFD, NFD: 1, "words": [NFD, [NFC], {"word": NFD}, 2.5, None, True]}
        assert in_nfc(value) == {"sentence": NFC, NFD: 1, "words": [NFC, [NFC], {"word": NFC}, 2.5, None, True]}


class TestLettersByScript:
    def test_letters_alone_count(self):
        """Oracle: by hand."""
        assert letters_by_script("눈이 왔다 ... 3월 NHK 雪 и 雨!") == {"HANGUL": 5, "LATIN": 3, "CJK": 2, "CYRILLIC": 1}
        assert not letters_by_script("12 . \ue000")
