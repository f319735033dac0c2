import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, linear

from elmo_tasks.bilm.softmax import lm_softmax as softmax_module
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax, Negatives

N_WORDS = 50
DIM = 6


def random_softmax(
    n_words: int = N_WORDS, dim: int = DIM, *, n_samples: int | None = None, seed: int = 0
) -> LmSoftmax:
    """In float64, with a random bias instead of zeros."""
    torch.manual_seed(seed)
    softmax = LmSoftmax(n_words, dim, n_samples=n_samples).double()
    torch.nn.init.normal_(softmax.bias)
    return softmax


def random_rows(
    n: int = 20, n_words: int = N_WORDS, dim: int = DIM, seed: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(n, dim, generator=generator, dtype=torch.float64, requires_grad=True)
    return hidden, torch.randint(n_words, (n,), generator=generator)


def logits_of(softmax: LmSoftmax, hidden: torch.Tensor) -> torch.Tensor:
    return linear(hidden, softmax.weight, softmax.bias)


def torch_likelihoods(
    softmax: LmSoftmax, hidden: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    return -cross_entropy(logits_of(softmax, hidden), targets, reduction="none").detach()


def torch_loss(softmax: LmSoftmax, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits_of(softmax, hidden), targets, reduction="sum")


def gradients(
    loss: torch.Tensor, softmax: LmSoftmax, hidden: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(loss, [hidden, softmax.weight, softmax.bias])


def assert_same_loss(
    softmax: LmSoftmax,
    loss: torch.Tensor,
    expected: torch.Tensor,
    hidden: torch.Tensor,
    **tolerances: float,
) -> None:
    """Compares the values and the gradients."""
    torch.testing.assert_close(loss, expected, **tolerances)
    expected_gradients = gradients(expected, softmax, hidden)
    torch.testing.assert_close(gradients(loss, softmax, hidden), expected_gradients, **tolerances)


def assert_full_softmax(softmax: LmSoftmax, hidden: torch.Tensor, targets: torch.Tensor) -> None:
    expected = torch_loss(softmax, hidden, targets)
    assert_same_loss(softmax, softmax(hidden, targets), expected, hidden)


def draw_these(
    monkeypatch: pytest.MonkeyPatch, words: list[int], horizon: float = math.inf
) -> None:
    """Makes these words the samples; by default, as if they were drawn with certainty."""
    negatives = Negatives(torch.tensor(words, dtype=torch.int64), torch.tensor(horizon))
    monkeypatch.setattr(
        softmax_module, "draw_negatives", lambda n_words, n_samples, device: negatives
    )


class TestFull:
    @given(
        n=st.integers(0, 12),
        n_words=st.integers(1, 30),
        dim=st.integers(1, 5),
        logits_at_once=st.integers(1, 200),
        training=st.booleans(),
    )
    def test_it_equals_torch_in_any_chunks(self, n, n_words, dim, logits_at_once, training):
        softmax = random_softmax(n_words, dim).train(training)
        hidden, targets = random_rows(n, n_words, dim)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(softmax_module, "LOGITS_AT_ONCE", logits_at_once)
            assert_full_softmax(softmax, hidden, targets)

    def test_under_autocast_the_sum_is_float32(self):
        softmax = random_softmax().float()
        hidden, targets = random_rows(500)
        with torch.autocast("cpu", torch.bfloat16):
            loss = softmax(hidden.float(), targets)
            likelihood = softmax.log_likelihood(hidden.bfloat16(), targets)
            softmax.n_samples = 20
            sampled = softmax(hidden.float(), targets)
            softmax.n_samples = None
        assert loss.dtype == sampled.dtype == likelihood.dtype == torch.float32
        expected = softmax(hidden.float(), targets)
        assert 0 < abs(loss - expected) < 1e-3 * expected
        rounded = hidden.detach().bfloat16().float()
        torch.testing.assert_close(likelihood.sum(), -softmax(rounded, targets).detach())


class TestLogLikelihood:
    @pytest.mark.parametrize("n_samples", [None, 10])
    @pytest.mark.parametrize("training", [True, False])
    def test_the_likelihoods_of_all_words_sum_to_one(self, n_samples, training):
        softmax = random_softmax(n_samples=n_samples).train(training)
        (row,), _ = random_rows(1)
        likelihoods = softmax.log_likelihood(row.expand(N_WORDS, -1), torch.arange(N_WORDS))
        assert likelihoods.shape == (N_WORDS,)
        assert not likelihoods.requires_grad
        one = torch.tensor(1.0, dtype=torch.float64)
        torch.testing.assert_close(likelihoods.exp().sum(), one)
        expected = logits_of(softmax, row).log_softmax(-1).detach()
        torch.testing.assert_close(likelihoods, expected)

    @pytest.mark.parametrize(("n_blocks", "n_words"), [(0, 5), (0.1, 2049), (1, 1024), (2.5, 3000)])
    def test_any_number_of_blocks_equals_torch(self, n_blocks, n_words):
        n = int(n_blocks * 256 * torch.get_num_threads())
        softmax = random_softmax(n_words, 3)
        hidden, targets = random_rows(n, n_words, 3)
        likelihoods = softmax.log_likelihood(hidden, targets)
        expected = torch_likelihoods(softmax, hidden, targets)
        torch.testing.assert_close(likelihoods, expected, rtol=1e-10, atol=1e-10)
        assert (likelihoods <= 0).all()

    def test_single_precision_has_six_digits(self):
        softmax = random_softmax(3000, 16)
        hidden, targets = random_rows(40, 3000, 16)
        expected = softmax.log_likelihood(hidden, targets)
        likelihoods = softmax.float().log_likelihood(hidden.float(), targets)
        assert likelihoods.dtype == torch.float32
        likelihoods = likelihoods.double()
        torch.testing.assert_close(likelihoods, expected, rtol=2e-6, atol=2e-6)
        torch.testing.assert_close(likelihoods.sum(), expected.sum(), rtol=1e-6, atol=0)

    @pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
    def test_very_unlikely_words_do_not_underflow(self, scale):
        softmax = random_softmax().float()
        rows, targets = random_rows()
        hidden = scale * rows.float()
        expected = torch_likelihoods(softmax, hidden, targets)
        assert scale == 1.0 or expected.min() < -90.0
        likelihoods = softmax.log_likelihood(hidden, targets)
        torch.testing.assert_close(likelihoods, expected, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("shift", [-200.0, -60.0, 60.0, 200.0])
    @pytest.mark.parametrize("is_in_biases", [True, False])
    def test_a_constant_added_to_all_logits_does_not_matter(self, shift, is_in_biases):
        softmax = random_softmax()
        hidden, targets = random_rows()
        with torch.no_grad():
            hidden[:, 0] = 1.0
            expected = softmax.log_likelihood(hidden, targets)
            softmax = softmax.float()
            if is_in_biases:
                softmax.bias.add_(shift)
            else:
                softmax.weight[:, 0].add_(shift)
        likelihoods = softmax.log_likelihood(hidden.float(), targets)
        torch.testing.assert_close(likelihoods.double(), expected, rtol=1e-4, atol=1e-4)


class TestSampled:
    def test_with_all_words_as_negatives_it_is_the_full_softmax(self, monkeypatch):
        draw_these(monkeypatch, torch.randperm(N_WORDS).tolist())
        softmax = random_softmax(n_samples=10)
        hidden, targets = random_rows()
        assert_full_softmax(softmax, hidden, targets)

    def test_it_is_tensorflows_formula(self, monkeypatch):
        words = [3, 0, 17, 8]
        horizon = 2.5
        draw_these(monkeypatch, words, horizon)
        softmax = random_softmax(n_samples=4)
        hidden, targets = random_rows(8)
        targets[:2] = torch.tensor([17, 3])
        ranks = torch.arange(N_WORDS)
        counts = 1 - torch.exp(-horizon * torch.log((ranks + 2) / (ranks + 1)))
        logits = logits_of(softmax, hidden) - counts.log()
        expected = torch.zeros((), dtype=torch.float64)
        for row, target in zip(logits, targets.tolist(), strict=True):
            negatives = [word for word in words if word != target]
            candidates = row[[target, *negatives]]
            expected = expected - candidates.log_softmax(0)[0]
        assert_same_loss(softmax, softmax(hidden, targets), expected, hidden, rtol=1e-5, atol=1e-5)

    def test_in_evaluation_it_is_the_full_softmax(self):
        softmax = random_softmax(n_samples=5).eval()
        hidden, targets = random_rows()
        assert_full_softmax(softmax, hidden, targets)

    def test_the_mean_approaches_the_full_softmax_with_more_samples(self):
        """The sampled loss is too small, as in TensorFlow."""
        softmax = random_softmax(n_words=200)
        hidden, targets = random_rows(64, n_words=200)
        expected = torch_loss(softmax, hidden, targets)
        (expected_gradient,) = torch.autograd.grad(expected, softmax.weight)
        loss_errors = []
        gradient_errors = []
        for n_samples in (10, 50, 150, 199):
            softmax.n_samples = n_samples
            losses = []
            loss_gradients = []
            for _ in range(100):
                loss = softmax(hidden, targets)
                (gradient,) = torch.autograd.grad(loss, softmax.weight)
                losses.append(loss.detach())
                loss_gradients.append(gradient)
            mean_loss = torch.stack(losses).mean()
            mean_gradient = torch.stack(loss_gradients).mean(0)
            loss_errors.append(float(1 - mean_loss / expected.detach()))
            difference = mean_gradient - expected_gradient
            gradient_errors.append(float(difference.norm() / expected_gradient.norm()))
        for errors in (loss_errors, gradient_errors):
            assert errors == sorted(errors, reverse=True)
            assert errors[0] > 0.1
            assert 0 < errors[-1] < 0.005

    def test_the_mean_gradient_at_the_true_distribution_is_zero(self):
        """
        With expected counts, the mean gradient is zero to within 5 standard errors, as with the
        full softmax.
        """
        softmax = LmSoftmax(N_WORDS, 1, n_samples=25)
        torch.manual_seed(0)
        probabilities = (torch.rand(N_WORDS) + 0.1) / torch.arange(1, N_WORDS + 1)
        torch.nn.init.zeros_(softmax.weight)
        with torch.no_grad():
            softmax.bias.copy_((probabilities / probabilities.sum()).log())

        def largest_error() -> float:
            means = []
            for _ in range(100):
                targets = torch.multinomial(probabilities, 1000, replacement=True)
                loss = softmax(torch.zeros(1000, 1), targets)
                means.append(torch.autograd.grad(loss, softmax.bias)[0])
            gradient = torch.stack(means)
            return float((gradient.mean(0) / gradient.std(0)).abs().max()) * math.sqrt(100)

        assert largest_error() < 5
        with pytest.MonkeyPatch.context() as monkeypatch:

            def no_counts(self: Negatives, words: torch.Tensor) -> torch.Tensor:
                return torch.zeros(words.shape)

            monkeypatch.setattr(Negatives, "log_expected_counts", no_counts)
            assert largest_error() > 20
