import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.bilm.softmax.lm_softmax import draw_negatives

CPU = torch.device("cpu")


def log_uniform(n_words: int) -> np.ndarray:
    """P(k) as TensorFlow documents it."""
    k = np.arange(n_words)
    return np.log((k + 2) / (k + 1)) / np.log(n_words + 1)


def draw_with_rejection(
    n_words: int, n_samples: int, rng: np.random.Generator
) -> tuple[list[int], int]:
    """
    Like TensorFlow's sampler, draws until there are enough distinct words; returns them and the
    number of draws.
    """
    words: dict[int, None] = {}
    n_tries = 0
    while len(words) < n_samples:
        words[int(rng.choice(n_words, p=log_uniform(n_words)))] = None
        n_tries += 1
    return list(words), n_tries


class TestDrawNegatives:
    @given(st.integers(2, 300), st.data())
    def test_the_words_are_different_and_in_the_vocabulary(self, n_words, data):
        n_samples = data.draw(st.integers(1, n_words - 1))
        words = draw_negatives(n_words, n_samples, CPU).words
        assert words.shape == (n_samples,)
        assert words.dtype == torch.int64
        assert len(set(words.tolist())) == n_samples
        assert words.min() >= 0
        assert words.max() < n_words

    def test_the_first_word_is_log_uniform(self):
        """To within 5 standard deviations of the binomial distribution."""
        torch.manual_seed(0)
        words = [draw_negatives(12, 3, CPU).words[0].item() for _ in range(4000)]
        expected = log_uniform(12)
        frequencies = np.bincount(words, minlength=12) / 4000
        deviations = np.sqrt(expected * (1 - expected) / 4000)
        assert (np.abs(frequencies - expected) < 5 * deviations).all()

    def test_sets_are_drawn_as_in_tensorflow(self):
        """
        Compared with sets drawn by rejection, to within 5 standard deviations of the difference.
        """
        torch.manual_seed(0)
        rng = np.random.default_rng(0)
        frequencies = np.zeros(12)
        expected = np.zeros(12)
        for _ in range(2000):
            negatives = draw_negatives(12, 5, CPU).words
            frequencies[negatives.numpy()] += 1 / 2000
            drawn, _ = draw_with_rejection(12, 5, rng)
            expected[drawn] += 1 / 2000
        deviations = np.sqrt(2 * expected * (1 - expected) / 2000)
        assert (np.abs(frequencies - expected) < 5 * deviations).all()

    def test_no_value_is_read_back_from_the_device(self):
        negatives = draw_negatives(1000, 50, torch.device("meta"))
        assert negatives.words.shape == (50,)
        assert negatives.log_expected_counts(negatives.words).shape == (50,)
        with pytest.raises(RuntimeError):
            negatives.horizon.item()


class TestExpectedCounts:
    @pytest.mark.parametrize("n_samples", [1, 4, 15, 29])
    def test_a_weighted_sample_estimates_the_whole_vocabulary(self, n_samples):
        torch.manual_seed(0)
        function = 1 / torch.arange(1, 31) + 0.1 * torch.rand(30)
        estimates = []
        for _ in range(4000):
            negatives = draw_negatives(30, n_samples, CPU)
            counts = negatives.log_expected_counts(negatives.words).exp()
            estimates.append((function[negatives.words] / counts).sum())
        mean = torch.stack(estimates).mean()
        error = torch.stack(estimates).std() / math.sqrt(4000)
        assert abs(mean - function.sum()) < 5 * error

    def test_the_horizon_is_the_number_of_tries(self):
        torch.manual_seed(0)
        rng = np.random.default_rng(0)
        horizons = []
        tries = []
        for _ in range(2000):
            negatives = draw_negatives(12, 5, CPU)
            horizons.append(negatives.horizon.item() * math.log(13))
            _, n_tries = draw_with_rejection(12, 6, rng)
            tries.append(n_tries)
        error = math.sqrt((np.var(horizons) + np.var(tries)) / 2000)
        assert abs(np.mean(horizons) - np.mean(tries)) < 5 * error

    def test_the_counts_match_tensorflow_for_a_large_vocabulary(self):
        torch.manual_seed(0)
        negatives = draw_negatives(180_000, 8192, CPU)
        n_tries = negatives.horizon.item() * math.log(180_001)
        expected = -np.expm1(n_tries * np.log1p(-log_uniform(180_000)))
        counts = negatives.log_expected_counts(torch.arange(180_000)).exp().double()
        torch.testing.assert_close(counts, torch.from_numpy(expected), rtol=1e-3, atol=0.0)
        assert abs(expected.sum() - 8192) < 5 * math.sqrt(8192)
