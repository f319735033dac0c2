import pickle
import sys
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from allennlp.common import Params, file_utils, util
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import TensorCache
from allennlp.common.plugins import import_plugins
from allennlp.common.util import int_to_device
from allennlp.data.dataset_readers import DatasetReader
from allennlp.training import Checkpointer
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.util import rescale_gradients


class TestAcceptVerboseReduceOnPlateau:
    def test_it_is_built_from_a_config_and_reduces(self):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        params = Params(
            {
                "type": "reduce_on_plateau",
                "factor": 0.1,
                "patience": 0,
                "mode": "max",
                "min_lr": 0.05,
            }
        )
        scheduler = LearningRateScheduler.from_params(params, optimizer=optimizer)
        rates = []
        for metric in (0.5, 0.4, 0.3):
            scheduler.step(metric)
            rates.append(optimizer.param_groups[0]["lr"])
        assert rates == pytest.approx([1.0, 0.1, 0.05])


class TestAcceptNumbersInCheckpoints:
    @pytest.fixture
    def load(self, tmp_path):
        """Saves a state as part of a checkpoint, and loads it."""

        def load(state):
            torch.save({"w": torch.ones(2)}, tmp_path / "model_state_e0_b0.th")
            torch.save(state, tmp_path / "training_state_e0_b0.th")
            return Checkpointer(tmp_path).load_checkpoint().trainer_state

        return load

    def test_numpy_numbers_are_loaded(self, load):
        numbers = [np.float64(0.1), np.float32(-2.5), np.int64(-3), np.uint8(200), np.bool_(True)]
        loaded = load({"numbers": numbers})["numbers"]
        assert loaded == numbers
        assert list(map(type, loaded)) == list(map(type, numbers))

    @pytest.mark.parametrize(
        "value", [np.array([1, 2]), np.datetime64("2026-01-01"), np.str_("a"), Params({})]
    )
    def test_other_objects_are_not(self, load, value):
        """NumPy's arrays and types would let a file read memory."""
        with pytest.raises(ConfigurationError, match=r"training_state_e0_b0\.th") as error:
            load({"value": value})
        assert "weights_only" not in str(error.value) and "\n" not in str(error.value)

    def test_nothing_is_allowed_in_other_files(self, load, tmp_path):
        load({"metric": np.float64(0.5)})
        torch.save({"metric": np.float64(0.5)}, tmp_path / "weights.th")
        with pytest.raises(pickle.UnpicklingError):
            torch.load(tmp_path / "weights.th")


class TestClipSparseGradients:
    def test_they_are_scaled_like_dense_ones(self):
        """The first id occurs twice, so its gradient has two entries."""
        gradients = []
        for sparse in (True, False):
            embedding = torch.nn.Embedding.from_pretrained(
                torch.ones(5, 3), freeze=False, sparse=sparse
            )
            other = torch.nn.Parameter(torch.ones(2))
            (embedding(torch.tensor([4, 4, 1])).pow(2).sum() + other.sum()).backward()
            model = torch.nn.Module()
            model.embedding, model.other = embedding, other
            gradients.append(
                [rescale_gradients(model, 1.5), embedding.weight.grad.to_dense(), other.grad]
            )
        for ours, expected in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, expected)


class TestWriteTensorCachesThatCanBeRead:
    def test_a_tensor_is_read_in_a_later_process(self, tmp_path):
        cache = TensorCache(tmp_path / "cache")
        cache["a"] = torch.tensor([1.0, 2.0])
        # A process keeps its tensors in memory too.
        cache.cache_cache.clear()
        assert cache["a"].tolist() == [1.0, 2.0]


class TestNumberGpus:
    def test_a_number_is_a_gpu_whether_or_not_there_is_one(self):
        assert [str(int_to_device(device)) for device in (1, -1, torch.device("cpu"))] == [
            "cuda:1",
            "cpu",
            "cpu",
        ]


class TestReadTreesFromAnyFolder:
    def test_trees_are_read(self, tmp_path):
        (tmp_path / "trees.txt").write_text("(TOP (S (NP (DT a) (NN dog)) (VP (VBZ barks))))\n")
        (tmp_path / "trees.txt").chmod(0o664)
        import_plugins()
        (instance,) = DatasetReader.by_name("ptb_trees")().read(tmp_path / "trees.txt")
        assert [token.text for token in instance["tokens"]] == ["a", "dog", "barks"]


class TestOpenLocalFilesWithoutACache:
    @pytest.fixture(autouse=True)
    def no_home(self, tmp_path, monkeypatch):
        """A folder that nobody can create, not even root."""
        (tmp_path / "file").write_text("")
        monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", str(tmp_path / "file" / "cache"))

    def test_files_and_folders_are_opened(self, tmp_path):
        for path in (tmp_path, tmp_path / "file", str(tmp_path / "file")):
            assert file_utils.cached_path(path) == str(path)

    def test_what_needs_the_cache_names_its_variable(self, tmp_path):
        with tarfile.open(tmp_path / "model.tar", "w") as archive:
            archive.add(tmp_path / "file", "weights.th")
        for path, extract in ((tmp_path / "missing", False), (tmp_path / "model.tar", True)):
            with pytest.raises(OSError, match="ALLENNLP_CACHE_ROOT"):
                file_utils.cached_path(path, extract_archive=extract)


class TestNameMissingSpacyModels:
    def test_the_command_that_installs_it_is_named(self, monkeypatch):
        # `spacy.cli.download` is a function, and hides its module.
        monkeypatch.setattr(
            sys.modules["spacy.cli.download"], "get_compatibility", lambda: sys.exit(1)
        )
        with pytest.raises(OSError, match="python -m spacy download xx_none_sm"):
            util.get_spacy_model("xx_none_sm")


WITHOUT_A_HOME = """
import os, pwd
os.environ.pop("HOME", None)
pwd.getpwuid = {}.__getitem__  # A KeyError, as for a user that does not exist.
import allennlp.commands
print(allennlp.common.file_utils.CACHE_DIRECTORY)
"""


@pytest.mark.weekly
def test_a_user_needs_no_home(run_python):
    assert run_python(WITHOUT_A_HOME) == "/nonexistent/.allennlp/cache\n"


OLD_PROJECT = """
from overrides import overrides
import torch
from allennlp.data import DatasetReader
from allennlp.training.trainer import GradientDescentTrainer

class Reader(DatasetReader):
    def __init__(self, lazy=False):
        super().__init__(lazy, manual_multi_process_sharding=False)

    @overrides
    def text_to_instance(self, tokens, tags=None):
        return None

print(Reader().text_to_instance("a"), Reader().max_instances, GradientDescentTrainer.__name__)
"""


def test_a_project_for_an_earlier_release_runs(run_python):
    """It imports overrides before torch, and its readers have the argument `lazy`."""
    assert run_python(OLD_PROJECT) == "None None GradientDescentTrainer\n"


def test_the_callback_of_wandb_starts_a_run_with_a_current_release(tmp_path, monkeypatch):
    """Which has no `generate_id`. A recovered training continues the run."""
    from allennlp.training.callbacks.wandb import WandBCallback

    runs: list[dict] = []
    wandb = SimpleNamespace(util=SimpleNamespace(), init=lambda **options: runs.append(options))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setenv("WANDB_API_KEY", "none")
    (tmp_path / "config.json").write_text("{}")
    trainer = SimpleNamespace()
    first = WandBCallback(str(tmp_path), watch_model=False, files_to_save=())
    first.on_start(trainer)
    again = WandBCallback(str(tmp_path), watch_model=False, files_to_save=())
    again.load_state_dict(first.state_dict())
    again.on_start(trainer)
    assert len(runs[0]["id"]) == 8 and "resume" not in runs[0]
    assert runs[1]["id"] == runs[0]["id"] and runs[1]["resume"] == "auto"
