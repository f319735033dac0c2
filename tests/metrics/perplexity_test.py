import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.metrics import Perplexity, perplexity

UNKNOWN = 2
# The losses of both directions, and the words.
BATCH = tuple[float, float, list[int]]
BATCHES = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.lists(st.integers(-1, 5), min_size=1)),
    min_size=1,
)


def given_to(metric: Perplexity, *batches: BATCH) -> Perplexity:
    for forward, backward, words in batches:
        metric(torch.tensor([forward, backward]), len(words), torch.tensor([words]))
    return metric


class TestPerplexity:
    @given(BATCHES)
    def test_it_is_per_prediction_and_not_per_batch(self, batches):
        metrics = given_to(Perplexity(UNKNOWN), *batches).get_metric()
        words = [word for *_, some in batches for word in some]
        forward, backward = (
            math.exp(sum(batch[i] for batch in batches) / len(words)) for i in (0, 1)
        )
        assert metrics["forward_perplexity"] == pytest.approx(forward, rel=1e-5)
        assert metrics["backward_perplexity"] == pytest.approx(backward, rel=1e-5)
        assert metrics["perplexity"] == pytest.approx((forward + backward) / 2, rel=1e-5)
        n_words = sum(word >= 0 for word in words)
        assert metrics["unknown_share"] == pytest.approx(words.count(UNKNOWN) / max(1, n_words))

    def test_all_metrics_are_zero_before_the_first_batch(self):
        metric = Perplexity(UNKNOWN)
        assert set(metric.get_metric().values()) == {0.0}
        given_to(metric, (1.0, 1.0, [2, 3])).get_metric(reset=True)
        assert set(metric.get_metric().values()) == {0.0}

    def test_many_small_losses_add_up(self):
        """A sum in float32 stops growing at 2 ** 24."""
        metric = given_to(Perplexity(UNKNOWN), (2.0**24, 2.0**24, [3] * 2**20))
        for _ in range(64):
            given_to(metric, (1.0, 1.0, [3]))
        n = 2**20 + 64
        assert metric.get_metric()["perplexity"] == pytest.approx(
            math.exp((2**24 + 64) / n), rel=1e-9
        )

    def test_tokens_are_timed_from_the_end_of_the_first_batch(self, monkeypatch):
        clock = iter(number / 2 for number in range(100))
        monkeypatch.setattr(perplexity.time, "monotonic", lambda: next(clock))
        metric = given_to(Perplexity(UNKNOWN), (1.0, 1.0, [3] * 1000))
        assert metric.get_metric()["tokens_per_second"] == 0.0
        given_to(metric, (1.0, 1.0, [3] * 7), (1.0, 1.0, [3] * 5))
        assert metric.get_metric(reset=True)["tokens_per_second"] == pytest.approx(12 / 1.0)
        assert metric.get_metric()["tokens_per_second"] == 0.0
