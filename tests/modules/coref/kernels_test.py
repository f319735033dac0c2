import pytest
import torch

from elmo_tasks.modules.coref.kernels import QuickDropout, pair_products


def tensors(n_mentions: int, n_antecedents: int) -> list[torch.Tensor]:
    torch.manual_seed(3)
    shapes = ((n_mentions, 6), (n_antecedents, 6), (4, 6))
    return [torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes]


class TestPairProducts:
    @pytest.mark.parametrize("sizes", [(3, 5), (1, 1), (2, 0), (0, 2)], ids=str)
    def test_they_match_each_pair(self, sizes):
        own, reference = tensors(*sizes), tensors(*sizes)
        found = pair_products(*own)
        expected = torch.einsum("ms,as,hs->mah", *reference)
        torch.testing.assert_close(found, expected)
        weights = torch.randn(expected.shape, dtype=torch.double)
        for tensor, value in ((found, weights), (expected, weights)):
            (tensor * value).sum().backward()
        for ours, theirs in zip(own, reference, strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)


class TestQuickDropout:
    @pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
    def test_it_drops_as_many_as_it_says_and_scales_the_others(self, p):
        """The share is within five standard deviations of the mean of the binomial distribution."""
        torch.manual_seed(5)
        n = 300_003
        dropped = QuickDropout(p)(torch.ones(n))
        share = float((dropped == 0).double().mean())
        assert abs(share - p) < 5 * (p * (1 - p) / n) ** 0.5
        torch.testing.assert_close(dropped[dropped != 0].unique(), torch.tensor([1 / (1 - p)]), rtol=1e-4, atol=0)

    def test_neighbours_that_share_a_draw_are_independent(self):
        torch.manual_seed(6)
        dropped = QuickDropout(0.3)(torch.ones(400_000)).view(-1, 4) == 0
        for first, second in ((0, 1), (0, 3), (1, 2), (2, 3)):
            both = float((dropped[:, first] & dropped[:, second]).double().mean())
            assert abs(both - 0.09) < 5 * (0.09 * 0.91 / len(dropped)) ** 0.5

    def test_the_gradient_is_dropped_as_the_value_was(self):
        torch.manual_seed(7)
        tensor = torch.randn(13, 5, 3, requires_grad=True)
        dropped = QuickDropout(0.4)(tensor)
        dropped.sum().backward()
        torch.testing.assert_close(tensor.grad * tensor, dropped)

    @pytest.mark.parametrize("p", [0.0, 1.0])
    def test_nothing_and_everything_are_as_in_torch(self, p):
        assert torch.equal(QuickDropout(p)(torch.ones(9)), torch.nn.Dropout(p)(torch.ones(9)))

    def test_nothing_is_dropped_in_evaluation(self):
        assert torch.equal(QuickDropout(0.5).eval()(torch.ones(9)), torch.ones(9))
