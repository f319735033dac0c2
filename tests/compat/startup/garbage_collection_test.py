"""Tests of elmo_tasks.compat.startup.garbage_collection."""

import gc
import importlib

import pytest
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.data.fields import LabelField

from elmo_tasks.compat.startup.garbage_collection import import_quickly, pause_garbage_collection
from tests.compat.packages import write_package, write_torch


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
        write_torch(tmp_path)
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
