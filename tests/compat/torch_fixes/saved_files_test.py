"""Tests of elmo_tasks.compat.torch_fixes.saved_files."""

import io
import pickle
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import TensorCache
from allennlp.training import Checkpointer
from allennlp.training.trainer import TrainerCheckpoint

from elmo_tasks.compat.torch_fixes.saved_files import load_without_code


@pytest.fixture
def path(tmp_path):
    torch.save({"weight": torch.arange(5000.0)}, tmp_path / "model.th")
    return tmp_path / "model.th"


class TestLoadWithoutCode:
    def test_objects_are_refused_in_a_sentence(self, path):
        """Oracle: the message, with the file and the switch."""
        with open(path, "wb") as file:
            pickle.dump(zipfile.ZipInfo("a"), file)
        with pytest.raises(ConfigurationError, match=r"model\.th must hold tensors .* ELMO_TASKS_ALLOW_PICKLE=1"):
            load_without_code(path, path)


def save(checkpointer, model_state, trainer_state):
    state = {"epochs_completed": 0, "batches_in_epoch_completed": 0, **trainer_state}
    checkpointer.save_checkpoint(SimpleNamespace(get_checkpoint_state=lambda: TrainerCheckpoint(model_state, state)))


class Touch:
    """What is pickled as a call, which creates a file when it is unpickled."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


class TestLoadTrainingState:
    def test_a_state_with_numpy_numbers_is_restored(self, tmp_path):
        """Oracle: what was saved."""
        checkpointer = Checkpointer(tmp_path)
        state = {"metric": numpy.float64(0.5), "best": numpy.array([1, 2]), "step": 3}
        save(checkpointer, {"w": torch.ones(2)}, state)
        loaded = checkpointer.load_checkpoint()
        assert torch.equal(loaded.model_state["w"], torch.ones(2))
        assert loaded.trainer_state["metric"] == state["metric"] and loaded.trainer_state["step"] == 3
        assert loaded.trainer_state["best"].tolist() == [1, 2]

    @pytest.mark.parametrize("part", [0, 1], ids=["model", "training"])
    def test_nothing_is_run(self, tmp_path, part):
        """Oracle: the message, which names file and switch, and a file that a pickled call would make."""
        checkpointer = Checkpointer(tmp_path)
        states = [{"w": torch.ones(2)}, {"step": 3}]
        states[part]["extra"] = Touch(tmp_path / "ran")
        save(checkpointer, *states)
        (tmp_path / "ran").unlink(missing_ok=True)
        with pytest.raises(ConfigurationError, match=r"state_e0_b0\.th must hold.*ELMO_TASKS_ALLOW_PICKLE=1"):
            checkpointer.load_checkpoint()
        assert not (tmp_path / "ran").exists()

    def test_who_trusts_the_file_says_so(self, tmp_path, monkeypatch):
        """Oracle: an object of a class of ours."""
        checkpointer = Checkpointer(tmp_path)
        save(checkpointer, {"w": torch.ones(2)}, {"mine": Params({"a": 1})})
        monkeypatch.setenv("ELMO_TASKS_ALLOW_PICKLE", "1")
        assert checkpointer.load_checkpoint().trainer_state["mine"].as_dict() == {"a": 1}

    @pytest.mark.parametrize("keep", [0, 100, -10])
    def test_a_file_that_was_cut_off_is_named(self, tmp_path, keep):
        """Oracle: the message."""
        checkpointer = Checkpointer(tmp_path)
        save(checkpointer, {"w": torch.ones(2)}, {"step": 3})
        (path,) = tmp_path.glob("model_state*")
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(ConfigurationError, match=f"{path.name} must hold"):
            checkpointer.load_checkpoint()

    def test_no_checkpoint_is_none(self, tmp_path):
        """Oracle: AllenNLP's documentation."""
        assert Checkpointer(tmp_path).load_checkpoint() is None


class TestLoadTensorCache:
    @pytest.mark.parametrize("tensor", [torch.arange(6.0).view(2, 3), torch.arange(12).view(3, 4)[1:, ::2]])
    def test_a_tensor_is_restored_without_a_warning(self, tmp_path, tensor):
        """Oracle: the tensor."""
        cache = TensorCache(tmp_path / "cache", map_size=2**20)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cache["key"] = tensor
            cache.cache_cache.clear()
            assert torch.equal(cache["key"], tensor)

    def test_a_slice_is_written_without_the_rest_of_its_storage(self, tmp_path):
        """Oracle: the size of what is in the database; the whole tensor has 4 MB."""
        cache = TensorCache(tmp_path / "cache", map_size=2**24)
        cache["key"] = torch.zeros(1_000_000)[:2]
        with cache.lmdb_env.begin() as transaction:
            assert len(transaction.get(b"key")) < 10_000

    def test_nothing_is_run(self, tmp_path):
        """Oracle: the message, and a file that a pickled call would make."""
        cache = TensorCache(tmp_path / "cache", map_size=2**20)
        buffer = io.BytesIO()
        torch.save(Touch(tmp_path / "ran"), buffer)
        (tmp_path / "ran").unlink(missing_ok=True)
        with cache.lmdb_env.begin(write=True) as transaction:
            transaction.put(b"key", buffer.getvalue())
        with pytest.raises(ConfigurationError, match="entry 'key' of the tensor cache"):
            cache["key"]
        assert not (tmp_path / "ran").exists()

    def test_a_cache_of_allennlp_itself_is_read_by_who_trusts_it(self, tmp_path, monkeypatch):
        """Oracle: a tensor written as AllenNLP 2.10.1 writes it."""
        monkeypatch.setenv("ELMO_TASKS_ALLOW_PICKLE", "1")
        cache = TensorCache(tmp_path / "cache", map_size=2**20)
        buffer = io.BytesIO()
        torch.save(torch.ones(3), buffer, pickle_protocol=pickle.HIGHEST_PROTOCOL)
        with cache.lmdb_env.begin(write=True) as transaction:
            transaction.put(b"key", buffer.getvalue())
        assert torch.equal(cache["key"], torch.ones(3))
        with pytest.raises(KeyError):
            cache["another"]
