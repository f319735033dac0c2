"""Tests of the modules that AllenNLP had before 1.0."""

import importlib
import importlib.util

import pytest

import elmo_tasks
from elmo_tasks.vectors import elmo_embedder


class TestFormerModules:
    def test_the_names_of_the_old_module_are_ours(self):
        """Oracle: the classes and constants of this package."""
        from allennlp.commands.elmo import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, ElmoEmbedder

        assert ElmoEmbedder is elmo_tasks.ElmoEmbedder
        assert DEFAULT_OPTIONS_FILE == elmo_embedder.DEFAULT_OPTIONS_FILE
        assert DEFAULT_WEIGHT_FILE == elmo_embedder.DEFAULT_WEIGHT_FILE

    def test_it_is_an_attribute_of_the_package(self):
        """Oracle: the class; other names are unknown, as ever."""
        import allennlp.commands

        assert allennlp.commands.elmo.ElmoEmbedder is elmo_tasks.ElmoEmbedder
        with pytest.raises(AttributeError, match=r"module 'allennlp\.commands' has no attribute 'elmos'"):
            allennlp.commands.elmos  # noqa: B018

    def test_no_other_module_is_found(self):
        """Oracle: `importlib`."""
        assert importlib.util.find_spec("allennlp.commands.elmos") is None
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("allennlp.commands.bert")
