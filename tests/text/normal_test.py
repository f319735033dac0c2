"""Tests of text from users."""

from elmo_tasks.text import in_nfc


def test_texts_are_normalised_and_lists_of_words_are_not():
    nfd, nfc = "Mu\u0308nchen", "München"
    assert in_nfc({"a": nfd, "b": {"c": nfd}, "d": [nfd, 1], "e": None}) == {
        "a": nfc,
        "b": {"c": nfc},
        "d": [nfd, 1],
        "e": None,
    }
