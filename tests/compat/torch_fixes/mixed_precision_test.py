"""Tests of elmo_tasks.compat.torch_fixes.mixed_precision."""

import importlib
import inspect
import warnings
from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.nn.parallel import TorchDdpAccelerator
from allennlp.nn.util import sequence_cross_entropy_with_logits, tiny_value_of_dtype
from allennlp.training import Checkpointer, GradientDescentTrainer

from tests.two_workers import reports_of_two_workers

AMP_MODULES = ("allennlp.nn.parallel.ddp_accelerator", "allennlp.training.gradient_descent_trainer")


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
