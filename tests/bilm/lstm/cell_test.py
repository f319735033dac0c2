"""Tests of what `bidirectional_layer_test.py` does not reach: the form of the products on a GPU, and bfloat16."""

import pytest
import torch

from elmo_tasks.bilm.lstm.cell import cell_backward, cell_forward

N_LSTMS, N_ROWS, DIM = 2, 3, 5


def draw(seed: int, dim: int = DIM) -> torch.Tensor:
    return 1.5 * torch.randn(N_LSTMS, N_ROWS, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("clip", [None, 0.7])
def test_stacked_products_equal_a_list_of_products(clip):
    results = []
    for form in (list, torch.clone):
        memory, gates = draw(1), draw(2, 4 * DIM)
        units = cell_forward(form(draw(0, 4 * DIM)), memory, clip, dtype=torch.float64, gates=gates)
        d_memory, d_products, again = draw(3), torch.empty_like(gates), torch.empty_like(units)
        cell_backward(gates, memory, draw(1), form(draw(4)), d_memory, clip, d_products=d_products, hidden=again)
        assert torch.equal(again, units)
        results.append((units, memory, gates, d_memory, d_products))
    torch.testing.assert_close(*results, rtol=0, atol=1e-14)


def test_only_the_products_and_the_output_are_bfloat16():
    products, memory = draw(0, 4 * DIM).bfloat16(), draw(1).float()
    expected_memory, now = memory.clone(), memory.clone()
    gates, expected_gates = torch.empty(2, N_LSTMS, N_ROWS, 4 * DIM)
    expected = cell_forward(products.float(), expected_memory, 1.0, dtype=torch.float32, gates=expected_gates)
    units = cell_forward(products, now, 1.0, dtype=torch.bfloat16, gates=gates)
    assert torch.equal(now, expected_memory) and torch.equal(gates, expected_gates)
    assert torch.equal(units, expected.bfloat16())
