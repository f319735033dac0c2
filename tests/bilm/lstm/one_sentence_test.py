from dataclasses import replace

import pytest
import torch

from elmo_tasks.bilm.lstm import one_sentence
from elmo_tasks.bilm.lstm.bidirectional_layer import BidirectionalLayer
from elmo_tasks.bilm.plain import Lstm
from tests.bilm.lstm.bidirectional_layer_test import NO_CLIPS, random_lstm


@pytest.mark.parametrize("elements_stacked", [0, one_sentence.ELEMENTS_STACKED])
@pytest.mark.parametrize("clips", [dict(), dict(cell_clip=0.5, projection_clip=0.4)])
@pytest.mark.parametrize("n_words", [1, 300])
def test_a_long_sentence_equals_the_plain_lstm(elements_stacked, clips, n_words, monkeypatch):
    """
    With one product for all LSTMs, and with one for each; in one chunk of words, and in several.
    """
    monkeypatch.setattr(one_sentence, "ELEMENTS_STACKED", elements_stacked)
    lstms = [random_lstm(seed, **clips).requires_grad_(False) for seed in range(2)]
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(2, n_words, 2, dtype=torch.float64, generator=generator)
    outputs = BidirectionalLayer(lstms)(inputs, [1] * n_words)
    for lstm, words, output in zip(lstms, inputs, outputs, strict=True):
        plain = Lstm(replace(NO_CLIPS, **clips)).double()
        plain.load_state_dict(lstm.state_dict())
        expected, _ = plain(words)
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("elements_stacked", [0, one_sentence.ELEMENTS_STACKED])
def test_weights_that_change_are_read_again(elements_stacked, monkeypatch):
    monkeypatch.setattr(one_sentence, "ELEMENTS_STACKED", elements_stacked)
    lstm = random_lstm().requires_grad_(False)
    layer = BidirectionalLayer([lstm])
    inputs = torch.ones(1, 3, 2, dtype=torch.float64)

    def is_fresh() -> bool:
        expected = BidirectionalLayer([lstm])(inputs, [1, 1, 1])
        return torch.equal(layer(inputs, [1, 1, 1]), expected)

    assert is_fresh()
    lstm.kernel.mul_(2.0)
    assert is_fresh()
    lstm.projection.mul_(2.0)
    assert is_fresh()
