import math
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.metrics import Perplexity, perplexity

UNKNOWN = 2


class Batch(NamedTuple):
    """The losses of both directions, and the words."""

    forward: float
    backward: float
    words: list[int]


LOSSES = st.integers(0, 50)
WORDS = st.lists(st.integers(-1, 5), min_size=1)
BATCHES = st.lists(st.builds(Batch, LOSSES, LOSSES, WORDS), min_size=1)


def add(metric: Perplexity, batch: Batch) -> None:
    losses = torch.tensor([batch.forward, batch.backward])
    metric(losses, len(batch.words), torch.tensor([batch.words]))


class TestPerplexity:
    @given(BATCHES)
    def test_it_is_per_prediction_and_not_per_batch(self, batches):
        metric = Perplexity(UNKNOWN)
        words = []
        for batch in batches:
            add(metric, batch)
            words += batch.words
        metrics = metric.get_metric()
        forward = math.exp(sum(batch.forward for batch in batches) / len(words))
        backward = math.exp(sum(batch.backward for batch in batches) / len(words))
        assert metrics["forward_perplexity"] == pytest.approx(forward, rel=1e-5)
        assert metrics["backward_perplexity"] == pytest.approx(backward, rel=1e-5)
        assert metrics["perplexity"] == pytest.approx((forward + backward) / 2, rel=1e-5)
        n_words = sum(word >= 0 for word in words)
        assert metrics["unknown_share"] == pytest.approx(words.count(UNKNOWN) / max(1, n_words))

    def test_all_metrics_are_zero_before_the_first_batch(self):
        metric = Perplexity(UNKNOWN)
        assert set(metric.get_metric().values()) == {0.0}
        add(metric, Batch(1.0, 1.0, [2, 3]))
        metric.get_metric(reset=True)
        assert set(metric.get_metric().values()) == {0.0}

    def test_many_small_losses_add_up(self):
        """A sum in float32 stops growing at 2 ** 24."""
        metric = Perplexity(UNKNOWN)
        add(metric, Batch(2.0**24, 2.0**24, [3] * 2**20))
        for _ in range(64):
            add(metric, Batch(1.0, 1.0, [3]))
        expected = math.exp((2**24 + 64) / (2**20 + 64))
        assert metric.get_metric()["perplexity"] == pytest.approx(expected, rel=1e-9)

    def test_tokens_are_timed_from_the_end_of_the_first_batch(self, monkeypatch):
        clock = iter(number / 2 for number in range(100))
        monkeypatch.setattr(perplexity.time, "monotonic", lambda: next(clock))
        metric = Perplexity(UNKNOWN)
        add(metric, Batch(1.0, 1.0, [3] * 1000))
        assert metric.get_metric()["tokens_per_second"] == 0.0
        for n_words in (7, 5):
            add(metric, Batch(1.0, 1.0, [3] * n_words))
        assert metric.get_metric(reset=True)["tokens_per_second"] == pytest.approx(12 / 1.0)
        assert metric.get_metric()["tokens_per_second"] == 0.0
