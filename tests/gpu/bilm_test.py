"""
Compares the biLM on a GPU with the biLM on the CPU in float64. Once a week, the tests also run on
the CPU, which keeps them correct.
"""

import dataclasses
from collections.abc import Sequence

import pytest
import torch
from torch.nn.functional import linear

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.character_encoder import distinct_rows
from elmo_tasks.bilm.packed_linear import StackedLinear
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from tests.bilm.helpers import SMALL, random_bilm
from tests.devices import ON_CUDA

pytestmark = pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.weekly), ON_CUDA]
)

# More units than the block size of a kernel, and not a multiple of it.
OPTIONS = dataclasses.replace(SMALL, cell_dim=300, projection_dim=70)
BATCHES = {
    "ragged": [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀", "The"], ["x" * 60]],
    "one word": [["The"]],
    "empty": [[], []],
    "no sentence": [],
    "long": [[f"w{index % 97}" for index in range(700)], ["a", "b"]],
    "many": [[f"w{index}"] * (index % 7) for index in range(200)],
}


@pytest.fixture(autouse=True)
def exact_products():
    """Disables TF32, which would round the factors."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def exact() -> Bilm:
    return random_bilm(OPTIONS, std=0.1).double()


def on(device: str, **arguments: object) -> Bilm:
    bilm = Bilm(OPTIONS, **arguments)
    bilm.load_state_dict(random_bilm(OPTIONS, std=0.1).state_dict())
    return bilm.requires_grad_(False).to(device)


def assert_near(layers: Sequence[torch.Tensor], exact_layers: Sequence[torch.Tensor]) -> None:
    for layer, expected in zip(layers, exact_layers, strict=True):
        torch.testing.assert_close(layer.cpu().double(), expected, rtol=0, atol=2e-5)


class TestLayers:
    @pytest.mark.parametrize("batch", BATCHES)
    def test_they_match_the_cpu(self, device, batch):
        output = on(device)(BATCHES[batch])
        expected = exact()(BATCHES[batch])
        assert torch.equal(output.mask.cpu(), expected.mask)
        assert all(layer.device.type == device for layer in output.layers)
        assert_near(output.layers, expected.layers)

    @pytest.mark.parametrize("batch", ["ragged", "many"])
    def test_bf16_is_near(self, device, batch):
        """A device without bfloat16 instructions computes the same products, but slowly."""
        output = on(device, precision="bf16")(BATCHES[batch])
        exact_output = exact()(BATCHES[batch])
        mask = exact_output.mask
        for layer, expected in zip(output.layers, exact_output.layers, strict=True):
            assert layer.dtype == torch.float32
            vectors = layer.cpu().double()[mask]
            assert torch.cosine_similarity(vectors, expected[mask], dim=-1).min() > 0.999

    def test_weights_that_change_are_read_again(self, device):
        bilm = on(device)
        bilm(BATCHES["ragged"])
        other = random_bilm(OPTIONS, std=0.1, seed=1)
        bilm.load_state_dict(other.state_dict())
        expected = other.double()(BATCHES["ragged"])
        assert_near(bilm(BATCHES["ragged"]).layers, expected.layers)


class TestTraining:
    @pytest.mark.parametrize("batch", ["ragged", "many"])
    @pytest.mark.parametrize("is_mixed", [False, True], ids=["float32", "bf16"])
    def test_gradients_match_the_cpu(self, device, batch, is_mixed):

        def gradients(bilm: Bilm) -> dict[str, torch.Tensor]:
            bilm.requires_grad_()
            loss = sum(layer.square().sum() for layer in bilm(BATCHES[batch]).layers)
            loss.backward()
            return {name: parameter.grad for name, parameter in bilm.named_parameters()}

        expected_gradients = gradients(exact())
        with torch.autocast(device, torch.bfloat16, enabled=is_mixed):
            gradients_on_device = gradients(on(device))
        tolerance = 0.1 if is_mixed else 1e-4
        for name, expected in expected_gradients.items():
            difference = gradients_on_device[name].cpu().double() - expected
            assert difference.norm() <= tolerance * expected.norm(), name

    def test_a_step_matches_the_cpu(self, device):
        """Compares the losses of both devices, with the full softmax, before and after the step."""

        def losses_of(bilm: Bilm, dtype: torch.dtype) -> list[float]:
            bilm.requires_grad_()
            torch.manual_seed(0)
            softmax = LmSoftmax(400, OPTIONS.projection_dim).to(next(bilm.parameters()))
            optimizer = torch.optim.SGD([*bilm.parameters(), *softmax.parameters()], lr=0.01)
            losses = []
            for _ in range(2):
                contexts = bilm.contexts(BATCHES["many"])
                total = softmax(contexts.hidden.flatten(0, 1), contexts.targets.flatten() % 400)
                assert total.dtype == dtype
                loss = total / contexts.targets.numel()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses

        losses = losses_of(on(device), torch.float32)
        assert losses == pytest.approx(losses_of(exact(), torch.float64), rel=1e-5)
        assert losses[1] < losses[0]


class TestParts:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_stacked_products(self, device, dtype):
        generator = torch.Generator().manual_seed(0)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator).to(dtype).to(device)

        weights = draw(2, 40, 33)
        inputs = draw(2, 9, 33)
        biases = draw(2, 40)
        addends = draw(2, 9, 40)
        with_bias = StackedLinear(weights, biases, dtype=dtype)(inputs)
        with_addend = StackedLinear(weights, dtype=dtype)(inputs, addends)
        atol = 1e-5 if dtype == torch.float32 else 0.2
        for i in range(2):
            product = linear(inputs[i].double().cpu(), weights[i].double().cpu())
            for result, other in ((with_bias[i], biases[i]), (with_addend[i], addends[i])):
                expected = product + other.cpu()
                torch.testing.assert_close(result.cpu().double(), expected, rtol=0, atol=atol)

    def test_distinct_rows(self, device):
        matrix = torch.tensor([[1, 2], [0, 0], [1, 2]], device=device)
        distinct, positions = distinct_rows(matrix)
        assert torch.equal(distinct[positions], matrix)
        assert len(distinct) == 2
