from typing import NamedTuple

import numpy as np
import pytest
import torch

from elmo_tasks.bilm.lstm.cell import Cell, LstmCell
from elmo_tasks.bilm.packing import pack
from elmo_tasks.modules.recurrent.encoders import GruCell, HighwayCell
from elmo_tasks.modules.recurrent.recurrent_layer import run_layer

DIM = 3
# The cell, its blocks of products (of the words, of the previous output, and all), and whether the
# output has dropout.
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
    tensors = [
        torch.randn(len(batch.steps), 2),
        *(torch.randn(n_directions, *shape) for shape in shapes),
    ]
    mask = (
        2.0 * torch.randint(2, (n_directions, batch.n_sentences, DIM)).double()
        if with_dropout
        else None
    )
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
    outputs = (
        run_layer(HighwayCell(), tensors[0], batch, *tensors[1:], dropout_mask=mask)
        .detach()
        .numpy()
    )
    words, weight, state_weight, bias = (tensor.detach().squeeze(0).numpy() for tensor in tensors)
    for sentence in range(batch.n_sentences):
        memory, output = np.zeros(DIM), np.zeros(DIM)
        for row in (batch.sentences == sentence).nonzero().flatten().tolist():
            thinned = output if mask is None else output * mask[0, sentence].numpy()
            products = weight @ words[row] + bias
            i, f, g, o, r = np.split(products[: 5 * DIM] + state_weight @ thinned, 5)
            memory = logistic(f) * memory + logistic(i) * np.tanh(g)
            output = (
                logistic(r) * logistic(o) * np.tanh(memory)
                + (1 - logistic(r)) * products[5 * DIM :]
            )
            np.testing.assert_allclose(outputs[row], output, atol=1e-12)


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class Candidate(NamedTuple):
    g: object


class Output(NamedTuple):
    output: torch.Tensor


class NoDerivatives(NamedTuple):
    output: torch.Tensor


class ElmanCell(Cell):
    """The example of `Cell`: `h_t = tanh(W x_t + U h_{t-1} + b)`."""

    gates = Candidate
    values = Output
    scales = Candidate(g=2.0)
    logistic = slice(0, 1)
    start = 0.0

    def forward(self, before, gates, values) -> None:
        torch.sub(gates.g, 0.5, out=values.output)

    def derivatives(self, gates, values, before, partials):
        torch.addcmul(gates, gates, gates, value=-1.0, out=partials)
        return NoDerivatives(values.output)

    def backward(self, d_output, d_previous, d_memory, partials, derivatives) -> None:
        partials.mul_(d_output.unsqueeze(-2))


def test_a_cell_of_few_lines_is_torchs_elman_network():
    batch = pack(np.array([4, 4]))
    (words, weight, state_weight, bias), _ = arguments(batch, (1, 1, 1), 1, False)
    outputs = run_layer(ElmanCell(), words, batch, weight, state_weight, bias)
    network = torch.nn.RNN(2, DIM).double()
    network.weight_ih_l0.data = weight[0].detach()
    network.weight_hh_l0.data = state_weight[0].detach()
    network.bias_ih_l0.data = bias[0].detach()
    network.bias_hh_l0.data.zero_()
    expected, _ = network(words.view(4, 2, 2))
    torch.testing.assert_close(outputs, expected.flatten(0, 1), rtol=0, atol=1e-12)
    expected.square().sum().backward()
    gradients = torch.autograd.grad(outputs.square().sum(), [weight, state_weight, bias])
    theirs = [network.weight_ih_l0.grad, network.weight_hh_l0.grad, network.bias_ih_l0.grad]
    for gradient, expected_gradient in zip(gradients, theirs, strict=True):
        torch.testing.assert_close(gradient[0], expected_gradient, rtol=0, atol=1e-12)
