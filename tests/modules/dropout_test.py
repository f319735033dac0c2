import pytest
import torch

from elmo_tasks.modules.dropout import Dropout


def dropped(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The output, the gradient of its sum of squares, and the state of the random number generator afterwards."""
    torch.manual_seed(3)
    leaf = inputs.detach().requires_grad_()
    output = module(leaf)
    output.square().sum().backward()
    return output, leaf.grad, torch.get_rng_state()


class TestDropout:
    @pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 2 / 3, 1.0])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
    def test_it_equals_torch_bit_for_bit_and_in_its_random_draws(self, p, dtype):
        inputs = torch.randn(70, 11, 130).to(dtype)
        for each in (inputs, inputs.transpose(0, 1), inputs[:, ::2], inputs[:0]):
            for ours, theirs in zip(dropped(Dropout(p), each), dropped(torch.nn.Dropout(p), each), strict=True):
                assert torch.equal(ours, theirs)

    def test_it_drops_nothing_in_evaluation(self):
        inputs = torch.randn(5, 5)
        assert torch.equal(Dropout(0.5).eval()(inputs), inputs)
