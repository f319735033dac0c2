"""The kernels run on a GPU, or on the CPU in Triton's interpreter: see `tests/conftest.py`."""

import sys
from collections.abc import Sequence

import pytest
import torch

from elmo_tasks.bilm.lstm import triton_steps
from elmo_tasks.bilm.lstm.torch_steps import SavedSteps, StepGradient, TorchSteps
from elmo_tasks.bilm.lstm.triton_steps import TritonSteps, has_triton_steps
from elmo_tasks.bilm.packed_linear import IS_GPU
from tests.bilm.helpers import plain_layers, plain_of, random_bilm
from tests.devices import DEVICES

SENTENCES = [["The", "cat", "sat", "."], [], ["Encyclopædia", "The"], ["x" * 60]]


@pytest.fixture
def triton():
    return pytest.importorskip("triton", reason="needs Triton, which has no wheel for this system")


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator)


def assert_near(tensors: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    for tensor, expected_tensor in zip(tensors, expected, strict=True):
        assert (tensor.cpu() - expected_tensor).norm() <= 1e-4 * expected_tensor.norm()


@pytest.mark.usefixtures("triton")
@pytest.mark.parametrize("device", DEVICES)
class TestTritonSteps:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    @pytest.mark.parametrize("clip", [None, 0.7])
    # A power of two; fewer units than a block; more than a block.
    @pytest.mark.parametrize("cell_dim", [32, 37, 1030])
    def test_a_step_equals_torchs_operators(self, device, cell_dim, clip, dtype):
        generator = torch.Generator().manual_seed(0)
        products = draw(generator, 2, 5, 4 * cell_dim).to(dtype)
        d_hidden = draw(generator, 2, 3, cell_dim).to(dtype)
        memory = draw(generator, 2, 5, cell_dim)
        d_memory = draw(generator, 2, 5, cell_dim)

        def run(steps_class, device) -> list[torch.Tensor]:
            z = products.clone().to(device)
            d_h = d_hidden.clone().to(device)
            before = memory.clone().to(device)
            d_m = d_memory.clone().to(device)
            steps = steps_class(clip, before, dtype)
            after = before.clone()
            # The rows of a step are views of larger tensors.
            gates = torch.zeros_like(z)
            memories = torch.zeros_like(after)
            saved = SavedSteps(gates, memories)[1:4]
            hidden = steps.forward(z[:, :3], after[:, :3], saved).clone()
            d_products = torch.zeros_like(z)
            hidden_again = torch.zeros_like(after, dtype=dtype)
            gradient = StepGradient(
                gates=saved.gates,
                memory=saved.memory,
                memory_before=before[:, :3],
                d_hidden=d_h,
                d_memory=d_m[:, :3],
                d_products=d_products[:, 2:],
                hidden=hidden_again[:, 2:],
            )
            steps.backward(gradient)
            return [hidden, after, gates, memories, d_products, hidden_again, d_m]

        tolerance = 2e-6 if dtype == torch.float32 else 0.03
        pairs = zip(run(TritonSteps, device), run(TorchSteps, "cpu"), strict=True)
        for result, expected in pairs:
            torch.testing.assert_close(result.cpu(), expected, rtol=tolerance, atol=tolerance)

    def test_a_bilm_has_the_layers_and_gradients_of_the_plain_one(self, device, monkeypatch):
        monkeypatch.setitem(IS_GPU, "cpu", True)
        monkeypatch.setattr("elmo_tasks.bilm.lstm.recurrence.has_triton_steps", lambda _: True)
        bilm = random_bilm().requires_grad_()
        plain = plain_of(bilm).double()
        bilm = bilm.to(device)
        layers = bilm(SENTENCES).layers
        with torch.no_grad():
            frozen_layers = bilm(SENTENCES).layers
        expected_layers = plain_layers(plain, SENTENCES)
        assert_near(layers, expected_layers)
        assert_near(frozen_layers, expected_layers)
        sum(layer.square().sum() for layer in layers).backward()
        sum(layer.square().sum() for layer in expected_layers).backward()
        gradients = [parameter.grad for parameter in bilm.parameters()]
        assert_near(gradients, [parameter.grad for parameter in plain.parameters()])


class TestHasTritonSteps:
    @pytest.fixture(autouse=True)
    def fresh(self):
        has_triton_steps.cache_clear()
        yield
        has_triton_steps.cache_clear()

    @pytest.mark.usefixtures("triton")
    @pytest.mark.parametrize("device", DEVICES)
    def test_the_kernels_are_correct(self, device, caplog):
        assert has_triton_steps(torch.device(device))
        assert not caplog.records

    @pytest.mark.parametrize("problem", ["is missing", "is wrong"])
    def test_kernels_that_fail_are_reported_once(self, problem, monkeypatch, caplog):
        monkeypatch.setitem(sys.modules, "elmo_tasks.bilm.lstm.triton_kernels", None)
        monkeypatch.delattr("elmo_tasks.bilm.lstm.triton_kernels", raising=False)
        if problem == "is wrong":
            monkeypatch.setattr(triton_steps, "is_correct", lambda _: False)
        for _ in range(2):
            assert not has_triton_steps(torch.device("cpu"))
        assert len(caplog.records) == 1
        assert "torch's operators replace them" in caplog.text
