"""Tests of text from users."""

import argparse

from elmo_tasks.text import add_nfc_argument, in_nfc


def test_texts_in_lists_and_dictionaries_are_normalised():
    decomposed = "Mu\u0308nchen"
    assert in_nfc({"a": [decomposed, 1, None], "b": decomposed}) == {"a": ["München", 1, None], "b": "München"}


def test_the_argument_defaults_to_nfc():
    parser = argparse.ArgumentParser()
    add_nfc_argument(parser)
    assert [parser.parse_args(given).nfc for given in ([], ["--no-nfc"])] == [True, False]
