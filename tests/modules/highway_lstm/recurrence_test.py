import numpy as np
import pytest
import torch

from elmo_tasks.bilm.packing import pack
from elmo_tasks.modules.highway_lstm import HighwayRecurrence

DIM = 3


class TestHighwayRecurrence:
    @pytest.mark.parametrize("runs_backward", [False, True])
    @pytest.mark.parametrize("with_dropout", [False, True])
    def test_it_is_the_formula_sentence_by_sentence(self, runs_backward, with_dropout):
        """Oracle: the equations of He et al. (2017), section 2.2, one word at a time."""
        torch.manual_seed(5)
        lengths = [2, 4, 0, 4]
        batch = pack(np.array(lengths))
        products, carried, weight, dropout_mask = arguments(batch, with_dropout)
        outputs = HighwayRecurrence.apply(products, carried, weight, dropout_mask, batch, runs_backward)
        for sentence in range(batch.n_sentences):
            rows = [row for row, owner in enumerate(batch.sentences.tolist()) if owner == sentence]
            memory, output = np.zeros(DIM), np.zeros(DIM)
            for row in reversed(rows) if runs_backward else rows:
                thinned = output if dropout_mask is None else output * dropout_mask[sentence].numpy()
                gates = products[row].detach().numpy() + weight.detach().numpy() @ thinned
                i, f, g, o, r = np.split(gates, 5)
                memory = logistic(f) * memory + logistic(i) * np.tanh(g)
                output = logistic(r) * logistic(o) * np.tanh(memory) + (1 - logistic(r)) * carried[row].detach().numpy()
                np.testing.assert_allclose(outputs[row].detach().numpy(), output, atol=1e-12)

    @pytest.mark.parametrize("runs_backward", [False, True])
    @pytest.mark.parametrize("with_dropout", [False, True])
    def test_gradients_match_finite_differences(self, runs_backward, with_dropout):
        torch.manual_seed(6)
        batch = pack(np.array([3, 1, 0, 3]))
        products, carried, weight, dropout_mask = arguments(batch, with_dropout)
        assert torch.autograd.gradcheck(
            lambda *tensors: HighwayRecurrence.apply(*tensors, dropout_mask, batch, runs_backward),
            (products, carried, weight),
        )


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def arguments(batch, with_dropout: bool):
    """Tensors in float64 with gradients, and a dropout mask."""
    n_words = len(batch.steps)
    products, carried, weight = (
        torch.randn(*size, dtype=torch.float64, requires_grad=True)
        for size in ((n_words, 5 * DIM), (n_words, DIM), (5 * DIM, DIM))
    )
    mask = 2.0 * torch.randint(2, (batch.n_sentences, DIM), dtype=torch.float64) if with_dropout else None
    return products, carried, weight, mask
