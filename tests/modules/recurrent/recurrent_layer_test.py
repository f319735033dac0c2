import numpy as np
import pytest
import torch

from elmo_tasks.bilm.lstm.cell import LstmCell
from elmo_tasks.bilm.packing import pack
from elmo_tasks.modules.recurrent.encoders import GruCell, HighwayCell
from elmo_tasks.modules.recurrent.recurrent_layer import run_layer

DIM = 3
# The cell, its blocks of products (of the words, of the previous output, and all), and whether the output has dropout.
CELLS = [
    (LstmCell(), (4, 4, 4), False),
    (LstmCell(), (4, 4, 4), True),
    (LstmCell(clip=0.5), (4, 4, 4), False),
    (GruCell(), (3, 3, 4), False),
    (HighwayCell(), (6, 5, 6), False),
    (HighwayCell(), (6, 5, 6), True),
]


def arguments(batch, blocks: tuple[int, int, int], n_directions: int, with_dropout: bool):
    """Words and weights in float64 with gradients, and a dropout mask."""
    torch.manual_seed(5)
    of_words, of_state, of_bias = (n * DIM for n in blocks)
    shapes = (of_words, 2), (of_state, DIM), (of_bias,)
    tensors = [torch.randn(len(batch.steps), 2), *(torch.randn(n_directions, *shape) for shape in shapes)]
    mask = 2.0 * torch.randint(2, (n_directions, batch.n_sentences, DIM)).double() if with_dropout else None
    return [tensor.double().requires_grad_() for tensor in tensors], mask


@pytest.mark.parametrize("n_directions", [1, 2])
@pytest.mark.parametrize(("cell", "blocks", "with_dropout"), CELLS)
def test_gradients_match_finite_differences(cell, blocks, n_directions, with_dropout):
    batch = pack(np.array([3, 1, 0, 3]))
    tensors, mask = arguments(batch, blocks, n_directions, with_dropout)

    def run(words: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return run_layer(cell, words, batch, *parameters, dropout_mask=mask)

    assert torch.autograd.gradcheck(run, tensors)


@pytest.mark.parametrize("with_dropout", [False, True])
def test_the_highway_lstm_is_the_formula_sentence_by_sentence(with_dropout):
    """Oracle: the equations of He et al. (2017), section 2.2, one word at a time."""
    batch = pack(np.array([2, 4, 0, 4]))
    tensors, mask = arguments(batch, (6, 5, 6), 1, with_dropout)
    outputs = run_layer(HighwayCell(), tensors[0], batch, *tensors[1:], dropout_mask=mask).detach().numpy()
    words, weight, state_weight, bias = (tensor.detach().squeeze(0).numpy() for tensor in tensors)
    for sentence in range(batch.n_sentences):
        memory, output = np.zeros(DIM), np.zeros(DIM)
        for row in (batch.sentences == sentence).nonzero().flatten().tolist():
            thinned = output if mask is None else output * mask[0, sentence].numpy()
            products = weight @ words[row] + bias
            i, f, g, o, r = np.split(products[: 5 * DIM] + state_weight @ thinned, 5)
            memory = logistic(f) * memory + logistic(i) * np.tanh(g)
            output = logistic(r) * logistic(o) * np.tanh(memory) + (1 - logistic(r)) * products[5 * DIM :]
            np.testing.assert_allclose(outputs[row], output, atol=1e-12)


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))
