"""Tests of the pools."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.vectors.pooling import POOLS, pooled


def by_hand(words: np.ndarray, pool: str) -> np.ndarray:
    """One sentence of shape `(n_words, 4)`, without padding."""
    if not len(words):
        return np.zeros(4)
    half = np.concatenate([words[-1, :2], words[0, 2:]])
    return {"mean": words.mean(0), "max": words.max(0), "first-last": half}[pool]


class TestPooled:
    @pytest.mark.parametrize("pool", POOLS)
    @given(
        lengths=st.lists(st.integers(0, 5), min_size=1, max_size=4), padding=st.integers(0, 2), seed=st.integers(0, 9)
    )
    def test_it_is_that_of_each_sentence_without_its_padding(self, pool, lengths, padding, seed):
        """Oracle: NumPy, sentence by sentence; negative numbers, which zeros of the padding would exceed."""
        sentences = [np.random.default_rng(seed).normal(-1.0, 1.0, (length, 4)) for length in lengths]
        vectors = np.zeros((len(lengths), max(lengths) + padding, 4))
        mask = np.zeros(vectors.shape[:2], bool)
        for row, sentence in enumerate(sentences):
            vectors[row, : len(sentence)] = sentence
            mask[row, : len(sentence)] = True
        expected = np.stack([by_hand(sentence, pool) for sentence in sentences])
        found = pooled(torch.from_numpy(vectors), torch.from_numpy(mask), pool)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
        # With layers between the sentences and their words.
        layers = torch.from_numpy(np.stack([vectors, 2 * vectors], 1))
        found = pooled(layers, torch.from_numpy(mask)[:, None], pool)
        np.testing.assert_allclose(found.numpy(), np.stack([expected, 2 * expected], 1), rtol=1e-12)
