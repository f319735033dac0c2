"""Tests of splitting into words and sentences by spaCy's rules."""

import pickle
import subprocess
import sys

import pytest
import spacy

from elmo_tasks.tokenization import blank_pipeline, blank_sentences, blank_tokenizer, sentences_of_words

TEXTS = ["Jordan beat Chelsea .", "Mr. O'Neill doesn't live\tin  the U.K.\n", "", "   ", "e.g. 3.5km, $5bn; don't!"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_words_equal_spacys_without_white_space(language):
    for text in TEXTS:
        expected = [token.text for token in spacy.blank(language)(text) if not token.text.isspace()]
        assert blank_tokenizer(language)(text) == expected


@pytest.mark.parametrize("make", [blank_tokenizer, blank_sentences])
def test_a_function_can_be_pickled_for_another_process(make):
    pickled = pickle.dumps(make("de"))
    code = f"import pickle; print(pickle.loads({pickled!r})('Es geht. Ja.'))"
    found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    assert found.stdout == f"{make('de')('Es geht. Ja.')}\n"


def test_errors_name_the_missing_package(monkeypatch):
    with pytest.raises(ImportError, match="klingon"):
        blank_tokenizer("klingon")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ModuleNotFoundError, match="pip install spacy"):
        blank_pipeline("en")


def test_sentences_end_at_full_stops_but_not_in_abbreviations():
    assert blank_sentences("en")(" Mr. Hill left.\n\nWhy? \n") == [["Mr.", "Hill", "left", "."], ["Why", "?"]]
    assert blank_sentences("en")(" \n ") == blank_sentences("en")("") == []
    assert sentences_of_words(["눈", "。", "", "Why", "?", "So"]) == [["눈", "。"], ["", "Why", "?"], ["So"]]
    assert sentences_of_words([]) == []
