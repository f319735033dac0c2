import re

import pytest
import torch

from elmo_tasks.bilm.softmax import adaptive_softmax
from elmo_tasks.bilm.softmax.adaptive_softmax import AdaptiveSoftmax


@pytest.fixture
def softmax():
    torch.manual_seed(0)
    return AdaptiveSoftmax(40, 16, cutoffs=[5, 20])


@pytest.fixture
def rows(softmax):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(30, 16, generator=generator), torch.randint(40, (30,), generator=generator)


class TestAdaptiveSoftmax:
    def test_it_equals_torch(self, softmax, rows):
        """Oracle: torch's `log_prob` of all words, which goes another way, and its gradients."""
        hidden, targets = rows
        expected = softmax.softmax.log_prob(hidden).gather(1, targets[:, None]).squeeze(1)
        torch.testing.assert_close(softmax.log_likelihood(hidden, targets), expected)
        torch.testing.assert_close(softmax(hidden, targets), -expected.sum())
        gradients = torch.autograd.grad(softmax(hidden, targets), list(softmax.parameters()))
        for ours, theirs in zip(
            gradients, torch.autograd.grad(-expected.sum(), list(softmax.parameters())), strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_the_likelihoods_of_all_words_sum_to_one(self, softmax, rows):
        """Oracle: 1."""
        hidden = rows[0][:1].expand(40, -1)
        total = softmax.log_likelihood(hidden, torch.arange(40)).exp().sum()
        torch.testing.assert_close(total, torch.tensor(1.0))

    def test_chunks_change_nothing(self, softmax, rows, monkeypatch):
        """Oracle: all rows at once."""
        expected = softmax.log_likelihood(*rows)
        monkeypatch.setattr(adaptive_softmax, "_ROWS_AT_ONCE", 7)
        torch.testing.assert_close(softmax.log_likelihood(*rows), expected)
        assert not softmax.log_likelihood(*rows).requires_grad

    @pytest.mark.parametrize("cutoffs", [[], [0, 5], [5, 5], [20, 5], [5, 40], [5, 41]])
    def test_cutoffs_that_cannot_be_are_refused(self, cutoffs):
        """Oracle: the message, which must hold the limits and the value."""
        with pytest.raises(ValueError, match=r"between 1 and 39 .* has 40 words.* but are " + re.escape(f"{cutoffs}")):
            AdaptiveSoftmax(40, 16, cutoffs=cutoffs)

    def test_more_cutoffs_than_units_are_refused(self):
        """Oracle: the message; torch would make a band without units."""
        with pytest.raises(ValueError, match=r"at least 4 \*\* the number of cutoffs.* but is 15 with 2 cutoffs"):
            AdaptiveSoftmax(40, 15, cutoffs=[5, 20])
