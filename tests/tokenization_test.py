"""Tests of words and sentences by spaCy's rules."""

import copy
import importlib
import pickle
import subprocess
import sys
from unittest.mock import Mock

import pytest
import spacy

from elmo_tasks import tokenization
from elmo_tasks.tokenization import blank_pipeline, blank_sentences, blank_tokenizer

TEXTS = ["Jordan beat Chelsea .", "Mr. O'Neill doesn't live\tin  the U.K.\n", "", "   ", "e.g. 3.5km, $5bn; don't!"]


class TestBlankPipeline:
    def test_each_call_makes_a_new_pipeline(self):
        """Oracle: a component that is added to one pipeline is not in the other."""
        blank_pipeline("de").add_pipe("sentencizer")
        assert (blank_pipeline("de").lang, blank_pipeline("de").pipe_names) == ("de", [])

    def test_an_unknown_language_is_an_error(self):
        """Oracle: the message has the language and the error of spaCy."""
        with pytest.raises(ValueError, match=r"language must be a code that spaCy knows.*'klingon': \[E048\]"):
            blank_pipeline("klingon")

    def test_an_error_of_the_installation_is_not_changed(self, monkeypatch):
        """Oracle: the error itself, as of Japanese without its package, or of a broken plugin."""
        broken = ImportError("no SudachiPy")

        def blank(language: str) -> None:
            raise broken

        monkeypatch.setattr(spacy, "blank", blank)
        with pytest.raises(ImportError) as raised:
            blank_pipeline("ja")
        assert raised.value is broken

    def test_a_known_language_whose_own_imports_fail_is_not_called_unknown(self, monkeypatch):
        """Oracle: spaCy's error for Faroese, without a module that it imports."""
        imported = importlib.import_module

        def import_module(name: str, package: str | None = None):
            if name == ".lang.fo":
                raise ModuleNotFoundError("No module named 'spacy.lang.char_classes'", name="spacy.lang.char_classes")
            return imported(name, package)

        monkeypatch.setattr(importlib, "import_module", import_module)
        with pytest.raises(ImportError, match=r"E048.*char_classes"):
            blank_pipeline("fo")


class TestBlankTokenizer:
    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("language", ["en", "de"])
    def test_the_words_are_those_of_spacy(self, text, language):
        """Oracle: a blank pipeline, without its white space."""
        expected = [token.text for token in spacy.blank(language)(text) if not token.text.isspace()]
        assert blank_tokenizer(language)(text) == expected

    @pytest.mark.parametrize("make", [blank_tokenizer, blank_sentences])
    def test_it_can_be_pickled(self, make):
        """Oracle: in this process the same one, in which its pipeline is; in another one its words."""
        split = make("de")
        pickled = pickle.dumps(split)
        assert pickle.loads(pickled) is split is copy.deepcopy(split)
        code = f"import pickle; print(pickle.loads({pickled!r})('Es geht. Ja.'))"
        found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
        assert found.stdout == f"{split('Es geht. Ja.')}\n"

    @pytest.mark.parametrize("make", [blank_tokenizer, blank_sentences])
    def test_an_unknown_language_is_an_error(self, make):
        """Oracle: the language in the message."""
        with pytest.raises(ValueError, match=r"language must be a code that spaCy knows.*'klingon'"):
            make("klingon")

    @pytest.mark.parametrize("make", [blank_tokenizer, blank_sentences])
    def test_without_spacy_the_error_says_what_to_do(self, make, monkeypatch):
        """Oracle: the message."""
        monkeypatch.setitem(sys.modules, "spacy", None)
        make.cache_clear()
        with pytest.raises(ModuleNotFoundError, match=r"pip install spacy.*, or give each sentence as a list"):
            make()


class TestBlankSentences:
    def test_sentences_end_by_the_rule_of_spacy(self):
        """Oracle: by hand; `Mr.` is one token and ends no sentence, and white space alone is no sentence."""
        found = blank_sentences()(" Mr. Hill left.\n\nWhy? \n")
        assert found == [["Mr.", "Hill", "left", "."], ["Why", "?"]]
        assert blank_sentences()(" \n ") == blank_sentences()("") == []

    @pytest.mark.parametrize("make", [blank_tokenizer, blank_sentences])
    def test_words_do_not_fill_the_memory(self, make, monkeypatch):
        """Oracle: how many pipelines are made of texts with ever new words; their words by hand."""
        monkeypatch.setattr(tokenization, "_MAX_DISTINCT_WORDS", 2000)
        pipelines = Mock(side_effect=tokenization.blank_pipeline)
        monkeypatch.setattr(tokenization, "blank_pipeline", pipelines)
        split = make.__wrapped__("en")
        for number in range(40):
            text = [f"w{number}x{other}" for other in range(100)]
            assert split(" ".join(text)) == (text if make is blank_tokenizer else [text])
        assert 2 < pipelines.call_count < 8

    def test_a_text_may_be_longer_than_a_pipeline_takes(self):
        """Oracle: the limit of a pipeline of spaCy."""
        text = ("x" * 9_000 + ". ") * 120
        assert len(text) > spacy.blank("en").max_length
        assert len(blank_sentences()(text)) == 120
