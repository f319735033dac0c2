"""Tests of elmo_tasks.compat.torch_fixes.changed_functions."""

import importlib
import logging

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.common.util import int_to_device
from allennlp.nn.util import move_to_device
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

CLIPPING_MODULES = (
    "allennlp.nn.parallel.ddp_accelerator",
    "allennlp.training.gradient_descent_trainer",
    "allennlp.training.util",
)


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
