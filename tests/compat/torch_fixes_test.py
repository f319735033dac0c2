"""Tests of elmo_tasks.compat.torch_fixes."""

import importlib
import inspect
import io
import logging
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.common.file_utils import TensorCache
from allennlp.common.util import int_to_device
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.nn.parallel import TorchDdpAccelerator
from allennlp.nn.util import move_to_device, sequence_cross_entropy_with_logits, tiny_value_of_dtype
from allennlp.training import Checkpointer, GradientDescentTrainer
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.trainer import TrainerCheckpoint

from elmo_tasks.compat import torch_fixes
from elmo_tasks.compat.torch_fixes import flushed_subnormals
from tests.two_workers import reports_of_two_workers

CLIPPING_MODULES = (
    "allennlp.nn.parallel.ddp_accelerator",
    "allennlp.training.gradient_descent_trainer",
    "allennlp.training.util",
)
AMP_MODULES = CLIPPING_MODULES[:2]


class TestNameCudaDevices:
    def test_a_number_is_a_cuda_device(self):
        """Oracle: the devices by name, on any machine."""
        assert int_to_device(0) == torch.device("cuda", 0)
        assert int_to_device(3) == torch.device("cuda", 3)
        assert int_to_device(-1) == torch.device("cpu")
        assert int_to_device(torch.device("cuda", 1)) == torch.device("cuda", 1)

    def test_modules_that_took_the_function_by_name_have_the_new_one(self):
        """Oracle: a tensor on the CPU stays there."""
        assert move_to_device({"x": torch.ones(1)}, -1)["x"].device.type == "cpu"
        assert importlib.import_module("allennlp.nn.util").int_to_device is int_to_device

    def test_a_gpu_that_does_not_exist_is_a_configuration_error(self, monkeypatch):
        """Oracle: AllenNLP's own message."""
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        with pytest.raises(ConfigurationError, match="none is available"):
            check_for_gpu(0)


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


class TestAcceptVerboseReduceOnPlateau:
    def scheduler(self, **params):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        params = Params({"type": "reduce_on_plateau", "factor": 0.1, "patience": 0, **params})
        return optimizer, LearningRateScheduler.from_params(params, optimizer=optimizer)

    def test_it_is_built_from_a_config_and_reduces(self):
        """Oracle: one epoch without improvement costs a factor of ten; mode and minimum are read from the config."""
        optimizer, scheduler = self.scheduler(mode="max", min_lr=0.05)
        rates = []
        for metric in (0.5, 0.4, 0.3):
            scheduler.step(metric)
            rates.append(optimizer.param_groups[0]["lr"])
        assert rates == pytest.approx([1.0, 0.1, 0.05])

    def test_verbose_is_accepted_with_a_warning(self, caplog):
        """Oracle: the warning, which names the option."""
        with caplog.at_level(logging.WARNING):
            self.scheduler()
            assert not caplog.messages
            self.scheduler(verbose=True)
        assert "'verbose'" in caplog.messages[0]


class TestClipNormOfSparseGradients:
    @pytest.mark.parametrize("name", CLIPPING_MODULES)
    @pytest.mark.parametrize("max_norm", [0.1, 100.0])
    def test_a_sparse_gradient_is_clipped_as_the_dense_one(self, name, max_norm):
        """Oracle: torch's function on the same model with dense gradients; a row occurs twice."""
        torch.manual_seed(0)
        weights = torch.randn(5, 3)
        indices = torch.tensor([1, 3, 1])
        gradients, norms = [], []
        for sparse in (True, False):
            clip = importlib.import_module(name).clip_grad_norm_ if sparse else torch.nn.utils.clip_grad_norm_
            embedding = torch.nn.Embedding(5, 3, sparse=sparse, _weight=weights.clone())
            linear = torch.nn.Linear(3, 2)
            linear.load_state_dict({"weight": weights[:2], "bias": weights[0, :2]})
            linear(embedding(indices)).pow(2).sum().backward()
            norms.append(clip([*embedding.parameters(), *linear.parameters()], max_norm))
            gradients.append([embedding.weight.grad.to_dense(), linear.weight.grad])
        torch.testing.assert_close(norms[0], norms[1])
        torch.testing.assert_close(gradients[0], gradients[1])

    def test_nothing_to_clip_is_the_norm_zero(self):
        """Oracle: torch's function."""
        clip = importlib.import_module(CLIPPING_MODULES[0]).clip_grad_norm_
        assert clip([], 1.0).item() == torch.nn.utils.clip_grad_norm_([], 1.0).item() == 0.0


class TestFlushedSubnormals:
    @staticmethod
    def subnormal() -> float:
        return float(torch.full((1,), 2e-38) * 0.5)

    @pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor has no such mode")
    def test_they_are_zero_in_the_block_alone(self):
        """Oracle: half of 2e-38 is below the smallest normal number, 1.18e-38, and 2e-38 itself is not."""
        assert self.subnormal() == pytest.approx(1e-38, rel=1e-3)
        with flushed_subnormals():
            assert self.subnormal() == 0.0
            assert float(torch.full((1,), 4e-38) * 0.5) > 0.0
            with flushed_subnormals():
                assert self.subnormal() == 0.0
            assert self.subnormal() == 0.0
        assert self.subnormal() > 0.0

    def test_they_are_back_after_an_error(self):
        """Oracle: the number before the block."""
        before = self.subnormal()
        with pytest.raises(ValueError, match=r"^wrong$"), flushed_subnormals():
            raise ValueError("wrong")
        assert self.subnormal() == before

    @pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor has no such mode")
    @pytest.mark.parametrize(
        ("fix", "name"),
        [
            ("flush_subnormals_in_training", "_train_worker"),
            ("flush_subnormals_in_evaluation", "evaluate_from_args"),
        ],
    )
    def test_training_and_evaluation_are_such_blocks(self, fix, name):
        """Oracle: what a stand-in for AllenNLP's function sees, and what holds after it."""
        module = SimpleNamespace(**{name: lambda factor, *, times: factor * times * self.subnormal()})
        getattr(torch_fixes, fix)(module)
        assert getattr(module, name)(2, times=3) == 0.0
        assert self.subnormal() > 0.0

    def test_the_commands_of_allennlp_have_the_fix(self):
        """Oracle: the original, which the fix keeps."""
        assert hasattr(importlib.import_module("allennlp.commands.train")._train_worker, "__wrapped__")
        assert hasattr(importlib.import_module("allennlp.commands.evaluate").evaluate_from_args, "__wrapped__")


class TestUseCurrentAmp:
    @pytest.mark.parametrize("name", AMP_MODULES)
    def test_it_does_not_warn_of_deprecation(self, name):
        """Oracle: warnings are errors; `False` is what a trainer without `use_amp` asks for on every batch."""
        amp = importlib.import_module(name).amp
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            with amp.autocast(False):
                assert not torch.is_autocast_enabled("cuda")
            warnings.simplefilter("ignore", UserWarning)  # "CUDA is not available" is true, and not tested here.
            assert isinstance(amp.GradScaler(), torch.amp.GradScaler)


class Linear(Model):
    """A linear regression, which notes the type of each product and whether it was computed in training."""

    def __init__(self):
        super().__init__(Vocabulary())
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3, 1)
        self.seen = []

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        output = self.layer(x)
        self.seen.append((output.dtype, self.training))
        return {"loss": (output - x.sum(-1, keepdim=True)).square().mean()}


def numbers() -> SimpleDataLoader:
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(8, 3, generator=generator)
    return SimpleDataLoader([Instance({"x": TensorField(row)}) for row in rows], batch_size=4)


def trainer_of(folder: Path, model: Model, wrapped=None, **options) -> GradientDescentTrainer:
    parameters = (model if wrapped is None else wrapped.model).parameters()
    return GradientDescentTrainer(
        model,
        torch.optim.Adam(parameters, lr=0.1),
        numbers(),
        validation_data_loader=numbers(),
        serialization_dir=folder,
        checkpointer=Checkpointer(folder),
        ddp_wrapped_model=wrapped,
        # It would train a step of its own.
        run_confidence_checks=False,
        **{"num_epochs": 1, "cuda_device": -1, **options},
    )


class TestAllowAmpWithoutCuda:
    @pytest.mark.parametrize(("use_amp", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
    def test_training_and_validation_are_in_bfloat16(self, tmp_path, use_amp, dtype):
        """Oracle: the types of products, two batches of each; weights and gradients stay float32."""
        model = Linear()
        trainer_of(tmp_path, model, use_amp=use_amp).train()
        assert model.seen == [(dtype, True)] * 2 + [(dtype, False)] * 2
        assert all(tensor.dtype == torch.float32 for tensor in (model.layer.weight, model.layer.weight.grad))
        assert not torch.is_autocast_enabled("cpu")

    @pytest.mark.parametrize("options", [{}, {"grad_norm": 1.0, "grad_clipping": 0.1, "grad_scaling": True}], ids=str)
    def test_it_learns_as_in_float32(self, tmp_path, options):
        """Oracle: the losses of the same training without `use_amp`; no gradient is scaled."""
        losses = []
        for use_amp in (False, True):
            trainer = trainer_of(tmp_path / f"{use_amp}", Linear(), use_amp=use_amp, num_epochs=3, **options)
            metrics = trainer.train()
            losses.append([metrics["training_loss"], metrics["validation_loss"]])
            assert trainer._scaler is None
        assert losses[1] == pytest.approx(losses[0], rel=0.02)
        assert losses[1] != losses[0]

    def test_a_training_is_recovered(self, tmp_path):
        """Oracle: the weights of a training that was not interrupted."""
        weights = []
        for folder, epochs in (("parts", [1, 3]), ("whole", [3])):
            for n_epochs in epochs:
                model = Linear()
                trainer_of(tmp_path / folder, model, use_amp=True, num_epochs=n_epochs).train()
            weights.append(model.layer.weight)
        assert len(model.seen) == 12
        torch.testing.assert_close(*weights, rtol=0, atol=0)

    def test_workers_train_together(self, tmp_path):
        """Oracle: bfloat16 in both, and the same weights, which are not those of the begin."""

        def train(rank):
            model = Linear()
            _, wrapped = TorchDdpAccelerator(local_rank=rank, world_size=2, cuda_device=-1).wrap_model(model)
            options = {"distributed": True, "local_rank": rank, "world_size": 2, "use_amp": True}
            trainer_of(tmp_path / "run", model, wrapped, **options).train()
            return {"types": sorted({str(dtype) for dtype, _ in model.seen}), "weight": model.layer.weight.tolist()}

        first, second = reports_of_two_workers(tmp_path, train)
        assert first == second and first["types"] == ["torch.bfloat16"]
        assert first["weight"] != Linear().layer.weight.tolist()

    @pytest.mark.parametrize("has_instructions", [True, False])
    def test_a_cpu_without_instructions_for_it_is_a_warning(self, tmp_path, monkeypatch, caplog, has_instructions):
        """Oracle: the log; it says what to set. Without `use_amp` there is none."""
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_instructions, raising=False)
        trainer_of(tmp_path, Linear())
        assert "bfloat16" not in caplog.text
        trainer_of(tmp_path, Linear(), use_amp=True)
        expected = "this CPU has no instructions: it is slower than float32. Set use_amp to false"
        assert (expected in caplog.text) is not has_instructions

    def test_a_gpu_that_does_not_exist_is_still_an_error(self, tmp_path, monkeypatch):
        """Oracle: AllenNLP's own message."""
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        with pytest.raises(ConfigurationError, match="none is available"):
            trainer_of(tmp_path, Linear(), use_amp=True, cuda_device=0)
        assert trainer_of(tmp_path, Linear(), use_amp=True, cuda_device=None)._use_amp == "cpu"

    def test_configs_find_the_settings_of_allennlp(self):
        """Oracle: the names of arguments that AllenNLP documents."""
        names = inspect.signature(GradientDescentTrainer).parameters
        assert {"use_amp", "grad_scaling", "cuda_device", "num_epochs"} <= set(names)


class TestAcceptBfloat16:
    def test_its_tiny_value_is_that_of_float32(self):
        """Oracle: the types that AllenNLP knows; their exponents are of the same size."""
        assert tiny_value_of_dtype(torch.bfloat16) == tiny_value_of_dtype(torch.float32)
        assert tiny_value_of_dtype(torch.half) == 1e-4
        with pytest.raises(TypeError, match="floating point"):
            tiny_value_of_dtype(torch.int64)

    @pytest.mark.parametrize("average", ["batch", "token", None])
    def test_the_loss_of_sequences_is_that_of_their_numbers_in_float32(self, average):
        """Oracle: the loss of the same numbers as float32, and its type; gradients have the type of the logits."""
        logits = torch.randn(2, 5, 7).bfloat16().requires_grad_()
        targets, mask = torch.arange(10).view(2, 5) % 7, torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
        loss = sequence_cross_entropy_with_logits(logits, targets, mask, average=average)
        expected = sequence_cross_entropy_with_logits(logits.detach().float(), targets, mask, average=average)
        torch.testing.assert_close(loss, expected, rtol=0, atol=0)
        loss.sum().backward()
        assert logits.grad.dtype == torch.bfloat16 and logits.grad[0].any()


class TestEncodeCharactersInSinglePrecision:
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_a_word_shorter_than_a_filter_is_zero_under_autocast_too(self, dtype):
        """Oracle: the same encoder outside of autocast."""
        encoder = CnnEncoder(embedding_dim=4, num_filters=3, ngram_filter_sizes=(2, 5))
        characters = torch.randn(2, 6, 4)
        mask = torch.tensor([[True] + 5 * [False], 6 * [True]])
        expected = encoder(characters, mask)
        assert torch.equal(expected[0], torch.zeros(6))
        with torch.autocast("cpu", dtype):
            assert torch.equal(encoder(characters, mask), expected)
            halves = encoder(characters.to(dtype), mask)
        torch.testing.assert_close(halves, expected, rtol=0.05, atol=0.05)
