import gc
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from allennlp.common import plugins, util
from allennlp.models import Model


class TestFindPluginsByEntryPoints:
    def test_all_models_are_registered_when_a_program_opens_an_archive(self, start):
        (folder,) = importlib.util.find_spec("allennlp_models").submodule_search_locations
        sources = [path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py")]
        expected = {
            name
            for source in sources
            for name in re.findall(r'@Model\.register\(\s*"([^"]+)"', source)
        }
        assert {"crf_tagger", "srl"} <= expected <= set(start["models"])

    def test_a_plugin_is_found_in_any_folder(self, start):
        assert "tiny_plugin" in start["modules"] and start["models"]["tiny"] == "tiny_plugin"

    def test_a_start_makes_no_connection(self, start):
        assert start["connections"] == []

    def test_no_module_of_the_current_folder_is_imported(self, start):
        assert start["of the folder"] == []

    def test_a_plugin_that_cannot_be_imported_is_an_error(self, monkeypatch):
        """Without the fix, AllenNLP logs it and continues."""
        name = "allennlp_models.tagging.models.crf_tagger"
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ModuleNotFoundError, match=name):
            plugins.import_plugins()

    @pytest.fixture
    def project(self, monkeypatch, tmp_path):
        """The current folder, of which only a plugin that is named is imported."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
        for name in ("conllu", "not_installed"):
            (tmp_path / f"{name}.py").write_text("raise AssertionError\n")
        yield tmp_path
        for name in ("my_plugin", "helpers_of_mine"):
            sys.modules.pop(name, None)

    def test_a_file_of_the_folder_names_plugins(self, project):
        (project / ".allennlp_plugins").write_text("my_plugin\n")
        (project / "my_plugin.py").write_text("import conllu\n")
        plugins.import_plugins()
        assert "my_plugin" in sys.modules
        assert importlib.util.find_spec("not_installed") is None

    def test_a_plugin_imports_its_neighbours(self, project):
        (project / "my_plugin.py").write_text("import helpers_of_mine\n")
        (project / "helpers_of_mine.py").touch()
        util.import_module_and_submodules("my_plugin")
        assert "helpers_of_mine" in sys.modules
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("not_installed")

    def test_a_plugin_may_be_a_folder_without_init(self, project):
        (project / "my_plugin").mkdir()
        (project / "my_plugin" / "part.py").touch()
        util.import_module_and_submodules("my_plugin")
        assert "my_plugin.part" in sys.modules
        del sys.modules["my_plugin.part"]

    def test_a_spawned_process_finds_it_again(self, project):
        """It has the same path."""
        (project / "my_plugin.py").write_text("import helpers_of_mine\nf = max\n")
        (project / "helpers_of_mine.py").touch()
        util.import_module_and_submodules("my_plugin")
        code = "import torch, importlib.util as u, my_plugin; print(u.find_spec('not_installed'))"
        path = f"import sys; sys.path[:] = {sys.path}; "
        process = subprocess.run(
            [sys.executable, "-P", "-c", path + code], capture_output=True, text=True, cwd=project
        )
        assert process.stdout == "None\n", process.stderr

    def test_a_config_names_a_class_of_the_folder(self, project):
        (project / "my_plugin.py").write_text("import conllu\nclass Mine:\n    pass\n")
        assert Model.by_name("my_plugin.Mine").__module__ == "my_plugin"
        assert importlib.util.find_spec("not_installed") is None

    def test_an_error_names_the_plugin(self, monkeypatch, tmp_path):
        (tmp_path / ".allennlp_plugins").write_text("old_plugin\n")
        (tmp_path / "old_plugin.py").write_text("import not_installed\n")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ImportError, match=r"plugin old_plugin .*not_installed"):
            plugins.import_plugins()


class TestSettleCommands:
    def test_only_a_command_changes_the_settings_of_the_process(self, start, command):
        assert start["unchanged"] == [True, True]
        before = gc.get_threshold()
        with pytest.raises(SystemExit):
            command("--version")
        assert gc.get_threshold()[0] == 100_000 and torch.tensor(1e-39).mul(1).item() == 0
        gc.set_threshold(*before)
        torch.set_flush_denormal(False)


class TestImportSubmodulesQuickly:
    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        """
        A package with a subpackage `data`, private modules and tests; the current folder has a
        different `data`.
        """
        for folder in ("walked/data", "data"):
            (tmp_path / folder).mkdir(parents=True)
        for file in (
            "walked/__init__",
            "walked/data/__init__",
            "walked/data/reader",
            "data/__init__",
        ):
            (tmp_path / f"{file}.py").write_text("")
        for file in ("walked/_private", "walked/test_it", "walked/data/omitted"):
            (tmp_path / f"{file}.py").write_text("raise RuntimeError\n")
        monkeypatch.chdir(tmp_path)
        yield "walked"
        for name in [name for name in sys.modules if name.split(".")[0] in ("walked", "data")]:
            del sys.modules[name]

    def test_every_public_module_is_imported_and_nothing_else(self, package):
        util.import_module_and_submodules(package, exclude={"walked.data.omitted"})
        assert {"walked", "walked.data", "walked.data.reader"} <= sys.modules.keys()
        assert "data" not in sys.modules
