"""
Compares the biLM on a GPU with the biLM on the CPU in float64. Once a week, the tests also run on
the CPU, which keeps them correct.
"""

import dataclasses

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
    bilm = random_bilm(OPTIONS, std=0.1)
    made = Bilm(OPTIONS, **arguments)
    made.load_state_dict(bilm.state_dict())
    return made.requires_grad_(False).to(device)


class TestLayers:
    @pytest.mark.parametrize("batch", BATCHES)
    def test_they_match_the_cpu(self, device, batch):
        found, expected = on(device)(BATCHES[batch]), exact()(BATCHES[batch])
        assert torch.equal(found.mask.cpu(), expected.mask)
        for ours, theirs in zip(found.layers, expected.layers, strict=True):
            assert ours.device.type == device
            torch.testing.assert_close(ours.cpu().double(), theirs, rtol=0, atol=2e-5)

    @pytest.mark.parametrize("batch", ["ragged", "many"])
    def test_bf16_is_near(self, device, batch):
        """A device without bfloat16 instructions computes the same products, but slowly."""
        found, expected = on(device, precision="bf16")(BATCHES[batch]), exact()(BATCHES[batch])
        for ours, theirs in zip(found.layers, expected.layers, strict=True):
            assert ours.dtype == torch.float32
            cosines = torch.cosine_similarity(
                ours.cpu().double()[expected.mask], theirs[expected.mask], dim=-1
            )
            assert cosines.min() > 0.999

    def test_weights_that_change_are_read_again(self, device):
        bilm = on(device)
        bilm(BATCHES["ragged"])
        bilm.load_state_dict(random_bilm(OPTIONS, std=0.1, seed=1).state_dict())
        expected = random_bilm(OPTIONS, std=0.1, seed=1).double()(BATCHES["ragged"])
        for ours, theirs in zip(bilm(BATCHES["ragged"]).layers, expected.layers, strict=True):
            torch.testing.assert_close(ours.cpu().double(), theirs, rtol=0, atol=2e-5)


class TestTraining:
    @pytest.mark.parametrize("batch", ["ragged", "many"])
    @pytest.mark.parametrize("is_mixed", [False, True], ids=["float32", "bf16"])
    def test_gradients_match_the_cpu(self, device, batch, is_mixed):
        found, expected = on(device).requires_grad_(), exact().requires_grad_()
        sum(layer.square().sum() for layer in expected(BATCHES[batch]).layers).backward()
        with torch.autocast(device, torch.bfloat16, enabled=is_mixed):
            sum(layer.square().sum() for layer in found(BATCHES[batch]).layers).backward()
        for (name, ours), theirs in zip(
            found.named_parameters(), expected.parameters(), strict=True
        ):
            gradient = ours.grad.cpu().double()
            tolerance = 0.1 if is_mixed else 1e-4
            assert (gradient - theirs.grad).norm() <= tolerance * theirs.grad.norm(), name

    def test_a_step_matches_the_cpu(self, device):
        """Compares the losses of both devices, with the full softmax, before and after the step."""
        losses = []
        for bilm, dtype in (
            (on(device).requires_grad_(), torch.float32),
            (exact().requires_grad_(), torch.float64),
        ):
            torch.manual_seed(0)
            softmax = LmSoftmax(400, OPTIONS.projection_dim).to(next(bilm.parameters()))
            optimizer = torch.optim.SGD([*bilm.parameters(), *softmax.parameters()], lr=0.01)
            for _ in range(2):
                contexts = bilm.contexts(BATCHES["many"])
                loss = softmax(contexts.hidden.flatten(0, 1), contexts.targets.flatten() % 400)
                losses.append(loss.item() / contexts.targets.numel())
                optimizer.zero_grad()
                (loss / contexts.targets.numel()).backward()
                optimizer.step()
            assert loss.dtype == dtype
        assert losses[:2] == pytest.approx(losses[2:], rel=1e-5)
        assert losses[1] < losses[0]


class TestParts:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_stacked_products(self, device, dtype):
        generator = torch.Generator().manual_seed(0)
        shapes = ((2, 40, 33), (2, 9, 33), (2, 40), (2, 9, 40))
        weights, inputs, biases, addends = (
            torch.randn(*shape, generator=generator).to(dtype) for shape in shapes
        )
        with_bias = StackedLinear(weights.to(device), biases.to(device), dtype=dtype)(
            inputs.to(device)
        )
        with_addend = StackedLinear(weights.to(device), dtype=dtype)(
            inputs.to(device), addends.to(device)
        )
        for i in range(2):
            product = linear(inputs[i].double(), weights[i].double())
            tolerance = dict(rtol=0, atol=1e-5 if dtype == torch.float32 else 0.2)
            torch.testing.assert_close(
                with_bias[i].cpu().double(), product + biases[i], **tolerance
            )
            torch.testing.assert_close(
                with_addend[i].cpu().double(), product + addends[i], **tolerance
            )

    def test_distinct_rows(self, device):
        matrix = torch.tensor([[1, 2], [0, 0], [1, 2]], device=device)
        distinct, positions = distinct_rows(matrix)
        assert torch.equal(distinct[positions], matrix)
        assert len(distinct) == 2
