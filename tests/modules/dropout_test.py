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

    @pytest.mark.parametrize("shares_draws", [False, True])
    def test_it_drops_nothing_in_evaluation(self, shares_draws):
        assert torch.equal(Dropout(0.5, shares_draws=shares_draws).eval()(torch.ones(9)), torch.ones(9))


class TestDropoutWithSharedDraws:
    @pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
    def test_it_drops_the_given_share_and_scales_the_rest(self, p):
        """The share is within five standard deviations of the binomial mean."""
        torch.manual_seed(5)
        n = 300_003
        dropped = Dropout(p, shares_draws=True)(torch.ones(n))
        share = float((dropped == 0).double().mean())
        assert abs(share - p) < 5 * (p * (1 - p) / n) ** 0.5
        torch.testing.assert_close(dropped[dropped != 0].unique(), torch.tensor([1 / (1 - p)]), rtol=1e-4, atol=0)

    def test_neighbours_that_share_a_draw_are_independent(self):
        torch.manual_seed(6)
        dropped = Dropout(0.3, shares_draws=True)(torch.ones(400_000)).view(-1, 4) == 0
        for first, second in ((0, 1), (0, 3), (1, 2), (2, 3)):
            both = float((dropped[:, first] & dropped[:, second]).double().mean())
            assert abs(both - 0.09) < 5 * (0.09 * 0.91 / len(dropped)) ** 0.5

    def test_gradients_are_dropped_where_values_are(self):
        torch.manual_seed(7)
        tensor = torch.randn(13, 5, 3, requires_grad=True)
        dropped = Dropout(0.4, shares_draws=True)(tensor)
        dropped.sum().backward()
        torch.testing.assert_close(tensor.grad * tensor, dropped)

    @pytest.mark.parametrize("p", [0.0, 1.0])
    def test_dropping_nothing_or_everything_matches_torch(self, p):
        assert torch.equal(Dropout(p, shares_draws=True)(torch.ones(9)), torch.nn.Dropout(p)(torch.ones(9)))
