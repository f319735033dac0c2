"""Tests of elmo_tasks.compat.package_fixes.spacy_models."""

import logging

import pytest
import spacy
from allennlp.common import util
from allennlp.data.tokenizers import SpacyTokenizer
from allennlp.data.tokenizers.sentence_splitter import SpacySentenceSplitter

TEXT = "Mr. O'Neill doesn't live in the U.K. (he's in N.Y.); it cost $3.50."


@pytest.fixture(autouse=True)
def no_download(monkeypatch):
    """Every attempt to download a model fails the test; no model is kept from another test."""
    monkeypatch.setattr(util, "spacy_download", lambda *args: pytest.fail("tried to download a model"))
    monkeypatch.setattr(util, "LOADED_SPACY_MODELS", {})


class TestUseBlankSpacyModels:
    def test_a_model_that_is_not_installed_is_the_blank_one_of_its_language(self):
        """Oracle: spaCy's blank models."""
        for name, language in (("en_core_web_none", "en"), ("de_core_news_none", "de")):
            tokens = [token.text for token in SpacyTokenizer(name).tokenize(TEXT)]
            assert tokens == [token.text for token in spacy.blank(language)(TEXT)]
            assert util.get_spacy_model(name).lang == language

    def test_it_warns_once_for_each_model(self, caplog):
        """Oracle: the messages; the second model of the same name has other options."""
        with caplog.at_level(logging.WARNING):
            for pos_tags in (True, False, True):
                util.get_spacy_model("en_core_web_warned", pos_tags=pos_tags)
        assert len(caplog.messages) == 1
        assert "python -m spacy download en_core_web_warned" in caplog.messages[0]

    def test_splitting_sentences_by_rules_needs_no_model(self):
        """Oracle: by hand."""
        splitter = SpacySentenceSplitter("en_core_web_none", rule_based=True)
        assert splitter.split_sentences("One is here. Two is there.") == ["One is here.", "Two is there."]

    @pytest.mark.parametrize(("option", "need"), [("parse", "a parser"), ("ner", "an entity recogniser")])
    def test_a_blank_model_does_not_replace_a_model_with_more_components(self, option, need):
        """Oracle: the message, with what was requested and the remedy."""
        with pytest.raises(OSError, match=f"{need} was requested.*python -m spacy download en_core_web_none"):
            util.get_spacy_model("en_core_web_none", **{option: True})

    def test_a_path_that_does_not_exist_is_an_error(self, tmp_path):
        """Oracle: the error names the path; its first letters may well be those of a language."""
        for path in (str(tmp_path / "en_model"), "en/model"):
            with pytest.raises(OSError, match=path):
                util.get_spacy_model(path)

    def test_a_folder_that_is_no_model_is_an_error(self, tmp_path, monkeypatch):
        """Oracle: spaCy's error; the name of the folder alone is that of a model."""
        (tmp_path / "en_core_web_folder").mkdir()
        monkeypatch.chdir(tmp_path)
        with pytest.raises(OSError, match=r"E053.*en_core_web_folder"):
            util.get_spacy_model("en_core_web_folder")

    def test_a_path_of_a_model_is_loaded(self, tmp_path):
        """Oracle: a model saved there, with a component that a blank one lacks."""
        model = spacy.blank("en")
        model.add_pipe("sentencizer")
        model.to_disk(tmp_path / "model")
        assert util.get_spacy_model(str(tmp_path / "model")).pipe_names == ["sentencizer"]

    def test_a_name_without_a_language_is_an_error(self):
        """Oracle: spaCy's error for a model that it does not find."""
        with pytest.raises(OSError, match="zz_nothing"):
            util.get_spacy_model("zz_nothing")
