import pytest
import torch

from elmo_tasks.modules.dropout import Dropout


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_it_drops_the_given_share_and_scales_the_rest(p):
    """The share is within five standard deviations of the binomial mean."""
    torch.manual_seed(5)
    n = 300_003
    dropped = Dropout(p)(torch.ones(n))
    share = float((dropped == 0).double().mean())
    assert abs(share - p) < 5 * (p * (1 - p) / n) ** 0.5
    kept = dropped[dropped != 0].unique()
    torch.testing.assert_close(kept, torch.tensor([1 / (1 - p)]), rtol=1e-4, atol=0)


def test_neighbours_that_share_a_draw_are_independent():
    torch.manual_seed(6)
    dropped = Dropout(0.3)(torch.ones(400_000)).view(-1, 4) == 0
    for column, other_column in ((0, 1), (0, 3), (1, 2), (2, 3)):
        share_of_both = float((dropped[:, column] & dropped[:, other_column]).double().mean())
        assert abs(share_of_both - 0.09) < 5 * (0.09 * 0.91 / len(dropped)) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_are_dropped_where_values_are(dtype):
    torch.manual_seed(7)
    leaf = torch.randn(13, 5, 3, dtype=dtype, requires_grad=True)
    for tensor in (leaf, leaf.transpose(0, 1), leaf[:, ::2], leaf[:0]):
        dropped = Dropout(0.4)(tensor)
        (gradient,) = torch.autograd.grad(dropped.sum(), tensor, retain_graph=True)
        torch.testing.assert_close(gradient * tensor, dropped)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_dropping_nothing_or_everything_matches_torch(p):
    assert torch.equal(Dropout(p)(torch.ones(9)), torch.nn.Dropout(p)(torch.ones(9)))
    assert torch.equal(Dropout(0.5).eval()(torch.ones(9)), torch.ones(9))
