import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import linear

from elmo_tasks.bilm.lstm.packed_linear import PackedLinear, StackedLinear
from elmo_tasks.bilm.lstm.precision import supports_bf16, tf32_set_to
from tests.devices import DEVICES

CPU = torch.device("cpu")
# How far a result may be from the exact one, relative to the sum of the magnitudes that it adds up.
# A CPU without instructions for bfloat16 can round a product and then the sum.
ROUNDING = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 2**-8 if supports_bf16(CPU) else 2**-7}


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assert_is_the_product(
    result: torch.Tensor, inputs: torch.Tensor, weight: torch.Tensor, other: torch.Tensor, dtype: torch.dtype
) -> None:
    """Compares with `torch.nn.functional.linear` in float64 of the rounded factors; `other` is bias or addend."""
    assert result.dtype == dtype
    inputs, weight, other = (tensor.to(dtype).double() for tensor in (inputs, weight, other))
    size = linear(inputs.abs(), weight.abs()) + other.abs()
    assert result.shape == size.shape
    assert ((result.double() - linear(inputs, weight) - other).abs() <= ROUNDING[dtype] * size).all()


SIZES = dict(
    n_rows=st.integers(0, 70),
    input_dim=st.integers(1, 70),
    output_dim=st.integers(1, 70),
    dtype=st.sampled_from(list(ROUNDING)),
    seed=st.integers(0, 1000),
)


class TestPackedLinear:
    @settings(max_examples=100)
    @given(**SIZES)
    def test_it_is_the_product(self, n_rows, input_dim, output_dim, dtype, seed):
        """Oracle: `torch.nn.functional.linear` in float64, of the factors rounded to the type."""
        weight, inputs = draw(seed, output_dim, input_dim), draw(seed + 1, n_rows, input_dim)
        bias, addend = draw(seed + 2, output_dim), draw(seed + 3, n_rows, output_dim)
        rows = inputs.to(dtype)
        assert_is_the_product(PackedLinear(weight, bias, dtype=dtype)(rows), inputs, weight, bias, dtype)
        without_bias = PackedLinear(weight, dtype=dtype)
        assert_is_the_product(without_bias(rows), inputs, weight, torch.zeros(1), dtype)
        # The addend may lie in a larger tensor, and stays.
        added = addend.to(dtype)
        before = added.clone()
        assert_is_the_product(without_bias(rows, added), inputs, weight, addend, dtype)
        assert torch.equal(added, before)

    @pytest.mark.parametrize(("input_dim", "output_dim"), [(64, 256), (512, 100), (33, 2048)])
    @pytest.mark.parametrize("atol", [0.0, 1e-4], ids=["oneDNN", "without"])
    def test_each_row_is_independent_of_the_number_of_rows(self, monkeypatch, input_dim, output_dim, atol):
        """Oracle: all rows at once, with oneDNN to the last bit."""
        if atol:
            monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
        elif not PackedLinear(torch.ones(1, 1))._is_packed:
            pytest.skip("needs oneDNN")
        weight, inputs = draw(0, output_dim, input_dim).float(), draw(1, 130, input_dim).float()
        bias, addend = draw(2, output_dim).float(), draw(3, 130, output_dim).float()
        with_bias, without = PackedLinear(weight, bias), PackedLinear(weight)
        expected, expected_sum = with_bias(inputs), without(inputs, addend)
        for n_rows in (1, 2, 3, 7, 16, 31, 64, 65, 129):
            for found, rows in (
                (with_bias(inputs[:n_rows]), expected[:n_rows]),
                (with_bias(inputs[-n_rows:]), expected[-n_rows:]),
                (without(inputs[:n_rows], addend[:n_rows]), expected_sum[:n_rows]),
            ):
                torch.testing.assert_close(found, rows, rtol=0, atol=atol)

    def test_it_keeps_no_gradients(self):
        """Oracle: the weight without `requires_grad`."""
        weight = draw(0, 3, 2).float()
        packed = PackedLinear(weight.requires_grad_(), weight[:, 0])
        assert not packed(draw(1, 4, 2).float()).requires_grad

    @pytest.mark.parametrize("dtype", list(ROUNDING))
    def test_it_needs_no_one_dnn(self, monkeypatch, dtype):
        """Oracle: `torch.nn.functional.linear`, with a bias, with an addend, which stays, and alone."""
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
        weight, bias, inputs, addend = (draw(3, *shape).to(dtype) for shape in ((5, 7), (5,), (4, 7), (4, 5)))
        before = addend.clone()
        assert torch.equal(PackedLinear(weight, bias)(inputs), linear(inputs, weight, bias))
        assert torch.equal(PackedLinear(weight)(inputs), linear(inputs, weight))
        assert torch.equal(PackedLinear(weight)(inputs, addend), linear(inputs, weight) + addend)
        assert torch.equal(addend, before)


class TestStackedLinear:
    @settings(max_examples=50)
    @given(n=st.integers(1, 3), **SIZES)
    def test_each_is_a_product(self, n, n_rows, input_dim, output_dim, dtype, seed):
        """Oracle: `torch.nn.functional.linear` in float64, one by one; the rows lie among others, as those of steps."""
        weights, inputs = draw(seed, n, output_dim, input_dim), draw(seed + 1, n, n_rows + 3, input_dim)
        biases, addends = draw(seed + 2, n, output_dim), draw(seed + 3, n, n_rows + 3, output_dim)
        rows = inputs.to(dtype)[:, 2:-1]
        with_bias = StackedLinear(weights, biases, dtype=dtype)(rows)
        with_addend = StackedLinear(weights, dtype=dtype)(rows, addends.to(dtype)[:, 2:-1])
        alone = StackedLinear(weights, dtype=dtype)(rows)
        assert len(with_bias) == len(with_addend) == len(alone) == n
        for i in range(n):
            some, weight = inputs[i, 2:-1], weights[i]
            assert_is_the_product(with_bias[i], some, weight, biases[i], dtype)
            assert_is_the_product(with_addend[i], some, weight, addends[i, 2:-1], dtype)
            assert_is_the_product(alone[i], some, weight, torch.zeros(1), dtype)

    @pytest.mark.parametrize("dtype", list(ROUNDING))
    @pytest.mark.parametrize("device", DEVICES)
    def test_on_every_device_each_is_a_product(self, device, dtype):
        """Oracle: `torch.nn.functional.linear` in float64, one by one."""
        weights, inputs, biases, addends = draw(0, 2, 40, 33), draw(1, 2, 9, 33), draw(2, 2, 40), draw(3, 2, 9, 40)
        there = weights.to(device), inputs.to(device, dtype)
        with tf32_set_to(False):
            with_bias = StackedLinear(there[0], biases.to(device), dtype=dtype)(there[1])
            with_addend = StackedLinear(there[0], dtype=dtype)(there[1], addends.to(device, dtype))
        for i in range(2):
            assert_is_the_product(with_bias[i].cpu(), inputs[i], weights[i], biases[i], dtype)
            assert_is_the_product(with_addend[i].cpu(), inputs[i], weights[i], addends[i], dtype)
