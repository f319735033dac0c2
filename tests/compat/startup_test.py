"""Tests of elmo_tasks.compat.startup."""

import gc
import importlib.util
import logging
import re
import sys
from pathlib import Path

import pytest
from allennlp.common import plugins, util
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.data.fields import LabelField

from elmo_tasks.compat.startup import import_quickly, pause_garbage_collection
from tests.compat.packages import write_package


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


class _Reader(DatasetReader):
    """Three instances; it notes whether garbage is collected while it makes one."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self.collects: list[bool] = []

    def _read(self, file_path):
        for number in range(3):
            self.collects.append(gc.isenabled())
            yield Instance({"label": LabelField(number, skip_indexing=True)})

    def apply_token_indexers(self, instance) -> None:
        pass


class TestLoadInstancesQuickly:
    def test_no_garbage_is_collected_while_all_instances_are_loaded(self):
        """Oracle: `gc.isenabled` in the reader and afterwards; each instance is read once, and comes in each epoch."""
        reader = _Reader()
        loader = MultiProcessDataLoader(reader, "", batch_size=2)
        loader.index_with(Vocabulary())
        assert [batch["label"].tolist() for _ in range(2) for batch in loader] == [[0, 1], [2]] * 2
        assert reader.collects == [False] * 3
        assert gc.isenabled()

    def test_a_loader_that_drops_instances_collects(self):
        """Oracle: `gc.isenabled` in the reader, which reads them again for each epoch."""
        reader = _Reader()
        loader = MultiProcessDataLoader(reader, "", batch_size=1, max_instances_in_memory=1)
        loader.index_with(Vocabulary())
        assert [batch["label"].tolist() for _ in range(2) for batch in loader] == [[0], [1], [2]] * 2
        assert reader.collects == [True] * 6

    def test_an_error_of_the_reader_restores_the_collector(self, monkeypatch):
        """Oracle: the error, and `gc.isenabled`."""
        monkeypatch.setattr(_Reader, "_read", lambda self, path: (1 / 0 for _ in range(1)))
        with pytest.raises(ZeroDivisionError):
            MultiProcessDataLoader(_Reader(), "", batch_size=1)
        assert gc.isenabled()


class TestPauseGarbageCollection:
    def test_a_start_makes_no_full_collection(self, start):
        """Oracle: the collector's own count of full collections after torch; without the pause there are several."""
        assert start["full_collections"] == 0

    @pytest.mark.parametrize("enabled", [True, False])
    def test_the_collector_is_restored(self, enabled):
        """Oracle: `gc.isenabled`, also after an error."""
        (gc.enable if enabled else gc.disable)()
        try:
            with pytest.raises(RuntimeError), pause_garbage_collection():
                assert not gc.isenabled()
                raise RuntimeError
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


class TestImportQuickly:
    def test_a_package_that_is_missing_is_an_error_with_a_remedy(self, run_python, tmp_path):
        """Oracle: an AllenNLP of two lines in a new interpreter, whose commands import what is not installed."""
        write_package(tmp_path, "allennlp", "2.10.1")
        (tmp_path / "allennlp" / "commands.py").write_text("import not_installed_at_all\n")
        code = (
            "import torch\ntry:\n    import allennlp.commands\n"
            "except ModuleNotFoundError as error:\n    print(error.name, *error.__notes__)"
        )
        printed = run_python(code, path=tmp_path)
        assert printed.startswith("not_installed_at_all ")
        assert printed.count("Remedy: `pip install 'elmo_tasks[allennlp]'`") == 1

    def test_a_missing_module_of_ours_has_another_cause(self):
        """Oracle: no note."""
        with pytest.raises(ModuleNotFoundError) as caught, import_quickly():
            importlib.import_module("elmo_tasks.not_there")
        assert not hasattr(caught.value, "__notes__")
