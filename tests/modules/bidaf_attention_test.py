import numpy as np
import pytest
import torch

from elmo_tasks.modules import BidafAttention

DIM = 6


def softmax(scores: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores - scores.max())
    return exponents / exponents.sum()


def attention(x: np.ndarray, q: np.ndarray, w: np.ndarray, b: float) -> np.ndarray:
    """The formulas of the docstring for one pair of texts without padding, word by word."""
    scores = np.array([[w @ np.concatenate([x_i, q_j, x_i * q_j]) + b for q_j in q] for x_i in x])
    c = softmax(scores.max(1)) @ x
    rows = []
    for x_i, scores_i in zip(x, scores, strict=True):
        a_i = softmax(scores_i) @ q
        rows.append(np.concatenate([x_i, a_i, x_i * a_i, x_i * c]))
    return np.stack(rows)


class TestBidafAttention:
    @pytest.mark.parametrize("seed", range(5))
    def test_it_computes_the_formulas(self, seed):
        """Oracle: the formulas in NumPy on each pair without padding, whose values are random."""
        torch.manual_seed(seed)
        module = BidafAttention(DIM).double()
        module.similarity._bias.data.fill_(0.3)
        context, question = torch.randn(3, 9, DIM).double(), torch.randn(3, 5, DIM).double()
        lengths = [(9, 2), (1, 5), (4, 1)]
        context_mask = torch.arange(9) < torch.tensor([n for n, _ in lengths])[:, None]
        question_mask = torch.arange(5) < torch.tensor([n for _, n in lengths])[:, None]
        with torch.no_grad():
            found = module(context, context_mask, question, question_mask).numpy()
        assert found.shape == (3, 9, module.get_output_dim())
        weights = module.similarity._weight_vector.detach().numpy()
        for row, (n_context, n_question) in enumerate(lengths):
            expected = attention(context[row, :n_context].numpy(), question[row, :n_question].numpy(), weights, 0.3)
            np.testing.assert_allclose(found[row, :n_context], expected, rtol=1e-9)
