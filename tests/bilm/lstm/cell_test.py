import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.bilm.lstm import cell as cell_module
from elmo_tasks.bilm.lstm.cell import cell_backward, cell_forward

CLIPS = st.none() | st.floats(0.05, 2.0) | st.integers(1, 2)
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6))


def draw(seed: int, *shape: int) -> torch.Tensor:
    return 1.5 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def with_doubled_candidates(products: torch.Tensor) -> torch.Tensor:
    i, g, f, o = products.chunk(4, -1)
    return torch.cat([i, 2.0 * g, f, o], -1)


def by_the_formula(products: np.ndarray, memory: np.ndarray, clip: float | None):
    """The step of `ProjectedLstm`'s docstring, before its projection, and the four gates; NumPy only."""

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    i, g, f, o = np.split(products, 4, -1)
    memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
    if clip is not None:
        memory = np.minimum(np.maximum(memory, -clip), clip)
    return (
        sigmoid(o) * np.tanh(memory),
        memory,
        np.concatenate([sigmoid(i), sigmoid(2 * g), sigmoid(f), sigmoid(o)], -1),
    )


class TestCellForward:
    @pytest.mark.parametrize("in_a_list", [False, True])
    @settings(max_examples=50)
    @given(SHAPES, CLIPS, st.integers(0, 1000))
    def test_it_equals_the_formula(self, in_a_list, shape, clip, seed):
        products, memory = draw(seed, *shape[:2], 4 * shape[2]), draw(seed + 1, *shape)
        hidden, last, of_gates = by_the_formula(products.numpy(), memory.numpy(), clip)
        doubled = with_doubled_candidates(products)
        now, gates = memory.clone(), torch.full_like(products, 9.0)
        units = cell_forward(list(doubled) if in_a_list else doubled, now, clip, dtype=torch.float64, gates=gates)
        np.testing.assert_allclose(2.0 * units.numpy(), hidden, rtol=0, atol=1e-14)
        np.testing.assert_allclose(now.numpy(), last, rtol=0, atol=1e-14)
        np.testing.assert_allclose(gates.numpy(), of_gates, rtol=0, atol=1e-14)

    def test_the_products_and_other_rows_are_unchanged(self):
        products, memory, gates = draw(0, 2, 3, 16), draw(1, 2, 7, 4), draw(2, 2, 9, 16)
        before = [tensor.clone() for tensor in (products, memory, gates)]
        cell_forward(products, memory[:, :3], 1.0, dtype=torch.float64, gates=gates[:, 4:7])
        assert torch.equal(products, before[0])
        assert torch.equal(memory[:, 3:], before[1][:, 3:])
        assert not (memory[:, :3] == before[1][:, :3]).any()
        assert torch.equal(gates[:, :4], before[2][:, :4]) and torch.equal(gates[:, 7:], before[2][:, 7:])
        assert not (gates[:, 4:7] == before[2][:, 4:7]).any()

    def test_only_the_products_and_the_output_are_bfloat16(self):
        products, memory = draw(0, 2, 3, 16).bfloat16(), draw(1, 2, 3, 4).float()
        expected_memory, now = memory.clone(), memory.clone()
        gates, expected_gates = torch.empty(2, 3, 16), torch.empty(2, 3, 16)
        expected = cell_forward(products.float(), expected_memory, 1.0, dtype=torch.float32, gates=expected_gates)
        units = cell_forward(products, now, 1.0, dtype=torch.bfloat16, gates=gates)
        assert torch.equal(now, expected_memory) and torch.equal(gates, expected_gates)
        assert torch.equal(units, expected.bfloat16())


class TestCellBackward:
    @pytest.mark.parametrize("in_a_list", [False, True])
    @settings(max_examples=100)
    @given(SHAPES, CLIPS, st.integers(0, 1000), st.integers(1, 50))
    def test_it_is_the_gradient(self, in_a_list, shape, clip, seed, gates_at_once):
        products, previous = draw(seed, *shape[:2], 4 * shape[2]), draw(seed + 1, *shape)
        d_hidden, d_memory = draw(seed + 2, *shape), draw(seed + 3, *shape)
        leaves = products.clone().requires_grad_(), previous.clone().requires_grad_()
        i, g, f, o = leaves[0].chunk(4, -1)
        memory = f.sigmoid() * leaves[1] + i.sigmoid() * g.tanh()
        if clip is not None:
            memory = memory.clamp(-clip, clip)
        hidden = 0.5 * o.sigmoid() * memory.tanh()
        expected = torch.autograd.grad([hidden, memory], leaves, [d_hidden, d_memory])

        gates, now = torch.empty_like(products), previous.clone()
        cell_forward(with_doubled_candidates(products), now, clip, dtype=torch.float64, gates=gates)
        given_before = [tensor.clone() for tensor in (now, previous, d_hidden)]
        each_d_hidden = list(d_hidden) if in_a_list else d_hidden
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(cell_module, "_GATES_AT_ONCE", gates_at_once)
            # In place: the gates become their gradient, and the memory's becomes the one before the step.
            cell_backward(gates, now, previous, each_d_hidden, d_memory, clip, d_products=gates)
        torch.testing.assert_close(gates, expected[0], rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(d_memory, expected[1], rtol=1e-12, atol=1e-13)
        for after, before in zip((now, previous, d_hidden), given_before, strict=True):
            assert torch.equal(after, before)
