"""Tests of elmo_tasks.modules.coref.pair_products."""

import pytest
import torch

from elmo_tasks.modules.coref.pair_products import pair_products


def tensors(n_mentions: int, n_antecedents: int) -> list[torch.Tensor]:
    torch.manual_seed(3)
    shapes = ((n_mentions, 6), (n_antecedents, 6), (4, 6))
    return [torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes]


class TestPairProducts:
    @pytest.mark.parametrize("sizes", [(3, 5), (1, 1), (2, 0), (0, 2)], ids=str)
    def test_they_are_those_of_each_pair(self, sizes):
        own, reference = tensors(*sizes), tensors(*sizes)
        found = pair_products(*own)
        expected = torch.einsum("ms,as,hs->mah", *reference)
        torch.testing.assert_close(found, expected)
        weights = torch.randn(expected.shape, dtype=torch.double)
        for tensor, value in ((found, weights), (expected, weights)):
            (tensor * value).sum().backward()
        for ours, theirs in zip(own, reference, strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)
