"""Tests of elmo_tasks.compat.startup.plugins."""

import importlib.util
import logging
import re
import sys
from pathlib import Path

import pytest
from allennlp.common import plugins, util


class TestAddOurPlugin:
    def test_all_models_are_registered(self, start):
        """Oracle: the decorators in the source of allennlp-models."""
        (folder,) = importlib.util.find_spec("allennlp_models").submodule_search_locations
        sources = [path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py")]
        expected = {name for source in sources for name in re.findall(r'@Model\.register\(\s*"([^"]+)"', source)}
        assert {"crf_tagger", "srl"} <= expected <= set(start["models"])

    def test_our_plugin_is_imported_in_any_folder(self, start):
        """Oracle: `sys.modules` of an interpreter in a folder that has nothing of ours."""
        assert "elmo_tasks.plugin" in start["modules"]

    def test_a_start_makes_no_connection(self, start):
        """Oracle: a socket that records connections."""
        assert start["connections"] == []

    @pytest.mark.parametrize("name", ["elmo_tasks.plugin", "allennlp_models.tagging.models.crf_tagger"])
    def test_a_plugin_that_cannot_be_imported_is_an_error(self, name, monkeypatch):
        """Oracle: the error of its import; AllenNLP logs it and continues."""
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ModuleNotFoundError, match=name):
            plugins.import_plugins()

    def test_plugins_that_are_found_are_not_logged(self, caplog):
        """Oracle: an empty log."""
        with caplog.at_level(logging.INFO):
            plugins.import_plugins()
        assert caplog.messages == []

    def test_a_plugin_file_of_the_current_folder_is_said(self, tmp_path, monkeypatch, caplog):
        """Oracle: the line in the log; the module of the file is imported."""
        (tmp_path / ".allennlp_plugins").write_text("startup_test_plugin\n")
        (tmp_path / "startup_test_plugin.py").write_text("")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        plugins.import_plugins()
        assert f"imports the modules that {tmp_path / '.allennlp_plugins'} names" in caplog.text
        assert "startup_test_plugin" in sys.modules


class TestSearchCurrentFolderLast:
    def test_files_of_the_folder_do_not_stand_in_for_packages(self, start):
        """
        Oracle: the end of an interpreter in a folder with files that have the names of packages that AllenNLP imports,
        which would end it with an error; the packages that no import is deferred for were imported.
        """
        assert {"conllu", "ftfy", "word2number", "more_itertools"} <= set(start["modules"])

    def test_a_package_of_the_folder_is_found(self, tmp_path, monkeypatch):
        """Oracle: `--include-package` with a package of the current folder; the path afterwards."""
        (tmp_path / "startup_test_package").mkdir()
        (tmp_path / "startup_test_package" / "__init__.py").write_text("")
        monkeypatch.chdir(tmp_path)
        before = list(sys.path)
        util.import_module_and_submodules("startup_test_package")
        assert "startup_test_package" in sys.modules and sys.path == before


class TestImportSubmodulesQuickly:
    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        """A package that contains a package `data`, private modules and tests; and a `data` in the current folder."""
        for folder in ("walked/data", "data"):
            (tmp_path / folder).mkdir(parents=True)
        for file in ("walked/__init__", "walked/data/__init__", "walked/data/reader", "data/__init__"):
            (tmp_path / f"{file}.py").write_text("")
        for file in ("walked/_private", "walked/test_it", "walked/data/omitted"):
            (tmp_path / f"{file}.py").write_text("raise RuntimeError\n")
        monkeypatch.chdir(tmp_path)
        yield "walked"
        for name in [name for name in sys.modules if name.split(".")[0] in ("walked", "data")]:
            del sys.modules[name]

    def test_every_public_module_is_imported_and_nothing_else(self, package):
        """Oracle: `sys.modules`; a module that must not be imported raises an error; `data` is in another folder."""
        util.import_module_and_submodules(package, exclude={"walked.data.omitted"})
        assert {"walked", "walked.data", "walked.data.reader"} <= sys.modules.keys()
        assert "data" not in sys.modules

    def test_the_path_is_restored(self, package):
        """Oracle: `sys.path` before."""
        before = list(sys.path)
        util.import_module_and_submodules(package, exclude={"walked.data.omitted"})
        assert sys.path == before

    def test_the_caches_of_the_path_are_cleared_once(self, package, monkeypatch):
        """Oracle: the number of calls; AllenNLP makes one for each module."""
        calls = []
        monkeypatch.setattr(importlib, "invalidate_caches", lambda: calls.append(1))
        util.import_module_and_submodules(package, exclude={"walked.data.omitted"})
        assert len(calls) == 1

    def test_a_package_that_is_not_installed_is_an_error(self):
        """Oracle: Python's."""
        with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
            util.import_module_and_submodules("not_there_at_all")
