"""Tests of elmo_tasks.compat.startup."""

import gc
import importlib
import logging
import sys

import pytest
from allennlp.common import plugins, util

from elmo_tasks.compat.startup import pause_garbage_collection


class TestAddOurPlugin:
    def test_all_models_are_registered(self, start):
        """Oracle: AllenNLP and allennlp-models together register 47 names; with part of them missing, it is less."""
        theirs = [name for name, module in start["models"].items() if not module.startswith("elmo_tasks")]
        assert len(theirs) == 47
        assert {"crf_tagger", "srl"} <= set(theirs)

    def test_our_plugin_is_imported_in_any_folder(self, start):
        """Oracle: `sys.modules` of an interpreter in an empty folder."""
        assert "elmo_tasks.plugin" in start["modules"]

    def test_no_start_reaches_for_the_network(self, start):
        """Oracle: a socket that remembers who wanted to connect."""
        assert start["connections"] == []

    def test_a_spawned_process_knows_our_plugin(self, run_python):
        """Oracle: `sys.modules` of a process that was spawned in an empty folder, as distributed workers are."""
        printed = run_python(
            "import multiprocessing, sys\n"
            "from allennlp.common.plugins import import_plugins\n"
            "with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
            "    pool.apply(import_plugins)\n"
            '    print(pool.apply(eval, (\'"elmo_tasks.plugin" in __import__("sys").modules\',)))\n'
        )
        assert printed.split() == ["True"]

    @pytest.mark.parametrize("name", ["elmo_tasks.plugin", "allennlp_models.tagging.models.crf_tagger"])
    def test_a_plugin_that_cannot_be_imported_is_an_error(self, name, monkeypatch):
        """Oracle: the error of its import; AllenNLP writes a line into the log and goes on."""
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ModuleNotFoundError, match=name):
            plugins.import_plugins()

    def test_plugins_that_are_there_are_not_news(self, caplog):
        """Oracle: an empty log."""
        with caplog.at_level(logging.INFO):
            plugins.import_plugins()
        assert caplog.messages == []


class TestImportSubmodulesQuickly:
    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        """A package with a package `data` in it, private modules and tests; and a `data` in the current folder."""
        for folder in ("walked/data", "data"):
            (tmp_path / folder).mkdir(parents=True)
        for file in ("walked/__init__", "walked/data/__init__", "walked/data/reader", "data/__init__"):
            (tmp_path / f"{file}.py").write_text("")
        for file in ("walked/_private", "walked/test_it", "walked/data/left_out"):
            (tmp_path / f"{file}.py").write_text("raise RuntimeError\n")
        monkeypatch.chdir(tmp_path)
        yield "walked"
        for name in [name for name in sys.modules if name.split(".")[0] in ("walked", "data")]:
            del sys.modules[name]

    def test_every_public_module_is_imported_and_nothing_else(self, package):
        """Oracle: `sys.modules`; what is not to be imported raises an error, and `data` is no part of the package."""
        util.import_module_and_submodules(package, exclude={"walked.data.left_out"})
        assert {"walked", "walked.data", "walked.data.reader"} <= sys.modules.keys()
        assert "data" not in sys.modules

    def test_the_path_is_as_it_was(self, package):
        """Oracle: `sys.path` before."""
        before = list(sys.path)
        util.import_module_and_submodules(package, exclude={"walked.data.left_out"})
        assert sys.path == before

    def test_what_python_knows_about_its_path_is_forgotten_once(self, package, monkeypatch):
        """Oracle: the number of calls; AllenNLP makes one for each module."""
        calls = []
        monkeypatch.setattr(importlib, "invalidate_caches", lambda: calls.append(1))
        util.import_module_and_submodules(package, exclude={"walked.data.left_out"})
        assert len(calls) == 1

    def test_a_package_that_is_not_there_is_an_error(self):
        """Oracle: Python's."""
        with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
            util.import_module_and_submodules("not_there_at_all")


class TestPauseGarbageCollection:
    def test_a_start_collects_next_to_nothing(self, start):
        """Oracle: the collector's own count of full collections after torch; there are five without the pause."""
        assert start["full_collections"] == 0

    @pytest.mark.parametrize("enabled", [True, False])
    def test_afterwards_it_is_as_it_was(self, enabled):
        """Oracle: `gc.isenabled`, also after an error."""
        (gc.enable if enabled else gc.disable)()
        try:
            with pytest.raises(RuntimeError), pause_garbage_collection():
                assert not gc.isenabled()
                raise RuntimeError
            assert gc.isenabled() is enabled
        finally:
            gc.enable()
