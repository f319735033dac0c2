import numpy as np
import pytest
import torch

from elmo_tasks.bilm.packing import pack
from elmo_tasks.modules.recurrent.cells import GruCell, LstmCell
from elmo_tasks.modules.recurrent.recurrence import run_layer

DIM = 3
# The cell, its blocks of products (of the words, of the previous output, and all), and whether the output has dropout.
CELLS = [
    (LstmCell, (4, 4, 4), False),
    (LstmCell, (4, 4, 4), True),
    (GruCell, (3, 3, 4), False),
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
