import numpy as np
import pytest
import torch

from elmo_tasks.modules.attention import attend_in_blocks, softmax_over_words
from tests.largest_tensor import largest_tensor
from tests.task_models import BOTH

N_WORDS = 900
# A long text or pair of texts, and a short one.
TEXTS = {
    "sst": [(["tired"] * N_WORDS,), (["A", "charming", "film"],)],
    "snli": [("tired " * N_WORDS, "Two dogs run ."), ("A man sleeps .", "Silence")],
    "squad": [("Who runs ?", "tired " * N_WORDS), ("Who won ?", "Ann won .")],
}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("elmo_tasks.modules.attention.MAX_PAIRS", 100 * N_WORDS)


def test_blocks_have_all_words_in_order(small_blocks):
    words = torch.arange(2 * N_WORDS).view(2, N_WORDS, 1)
    sizes = []

    def attend(block, start):
        sizes.append(block.shape[1])
        assert torch.equal(block, words[:, start : start + block.shape[1]])
        return block

    for has_gradients, expected in ((False, [50] * 18), (True, [N_WORDS])):
        sizes.clear()
        with torch.set_grad_enabled(has_gradients):
            assert torch.equal(attend_in_blocks(attend, words), words)
        assert sizes == expected


@pytest.mark.weekly
@pytest.mark.parametrize("task", TEXTS)
def test_without_gradients_memory_is_linear_and_results_are_equal(make_model, task, small_blocks):
    made = make_model(task, BOTH)
    made.enlarge()
    tensors = made.batch(*TEXTS[task])
    outputs = []
    size_with_gradients = largest_tensor(lambda: outputs.append(made.model(**tensors)))
    with torch.no_grad():
        size = largest_tensor(lambda: outputs.append(made.model(**tensors)))
    # The weights of the attention of two texts, in float32.
    assert size < 4 * 2 * N_WORDS**2 <= size_with_gradients
    expected, output = outputs
    names = ("start_log_probs", "end_log_probs") if task == "squad" else ("logits",)
    for name in names:
        torch.testing.assert_close(output[name], expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_softmax_is_over_the_words_only(seed):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 7, size=3)
    scores = generator.normal(generator.choice([-300, -20, 0, 200]), 3, size=(3, 4, max(lengths)))
    mask = torch.arange(max(lengths)) < torch.as_tensor(lengths).unsqueeze(1)
    weights = softmax_over_words(torch.tensor(scores, dtype=torch.float32), mask).numpy()
    for row, length in enumerate(lengths):
        scores_of_words = scores[row, :, :length]
        exponents = np.exp(scores_of_words - scores_of_words.max(-1, keepdims=True))
        expected = exponents / exponents.sum(-1, keepdims=True)
        np.testing.assert_allclose(weights[row, :, :length], expected, rtol=1e-3, atol=1e-6)
        assert not weights[row, :, length:].any()
