import importlib.util
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import linear

from elmo_tasks.bilm.packed_linear import Int8Linear, PackedLinear, StackedLinear, packed_linear

# The largest error allowed, relative to the sum of the magnitudes of the terms. A CPU without
# bfloat16 instructions may round a product and then the sum. In float64, `linear` computes the
# product instead of oneDNN.
IN_BF16 = 2**-7
ROUNDING = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: IN_BF16}


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fresh_module() -> Any:
    """A copy of the module, because each process tests the operators once."""
    spec = importlib.util.find_spec(packed_linear.__module__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_is_the_product(
    result: torch.Tensor,
    inputs: torch.Tensor,
    weight: torch.Tensor,
    other: torch.Tensor,
    dtype: torch.dtype,
) -> None:
    """
    Compares with float64 `torch.nn.functional.linear` on the rounded factors; `other` is the bias
    or addend.
    """
    assert result.dtype == dtype
    inputs = inputs.to(dtype).double()
    weight = weight.to(dtype).double()
    other = other.to(dtype).double()
    size = linear(inputs.abs(), weight.abs()) + other.abs()
    assert result.shape == size.shape
    error = result.double() - linear(inputs, weight) - other
    assert (error.abs() <= ROUNDING[dtype] * size).all()


SIZES = dict(
    n_rows=st.integers(0, 70),
    input_dim=st.integers(1, 70),
    output_dim=st.integers(1, 70),
    dtype=st.sampled_from(list(ROUNDING)),
    seed=st.integers(0, 1000),
)


class TestPackedLinear:
    @given(**SIZES)
    def test_it_is_the_product(self, n_rows, input_dim, output_dim, dtype, seed):
        weight = draw(seed, output_dim, input_dim)
        inputs = draw(seed + 1, n_rows, input_dim)
        bias = draw(seed + 2, output_dim)
        addend = draw(seed + 3, n_rows, output_dim)
        rows = inputs.to(dtype)
        with_bias = PackedLinear(weight, bias, dtype=dtype)
        assert_is_the_product(with_bias(rows), inputs, weight, bias, dtype)
        without_bias = PackedLinear(weight, dtype=dtype)
        assert_is_the_product(without_bias(rows), inputs, weight, torch.zeros(1), dtype)
        # The addend is not overwritten.
        added = addend.to(dtype)
        before = added.clone()
        assert_is_the_product(without_bias(rows, added), inputs, weight, addend, dtype)
        assert torch.equal(added, before)

    @pytest.mark.parametrize(("input_dim", "output_dim"), [(64, 256), (512, 100), (33, 2048)])
    def test_each_row_is_independent_of_the_number_of_rows(self, input_dim, output_dim):
        """
        On an AMD processor, to the last bit. This independence is the reason for the packed layout.
        """
        packed = PackedLinear(draw(0, output_dim, input_dim).float())
        inputs = draw(1, 130, input_dim).float()
        addend = draw(3, 130, output_dim).float()
        expected = packed(inputs, addend)
        for n_rows in (1, 2, 7, 31, 64, 129):
            torch.testing.assert_close(
                packed(inputs[:n_rows], addend[:n_rows]), expected[:n_rows], rtol=0, atol=1e-4
            )

    def test_it_keeps_no_gradients(self):
        weight = draw(0, 3, 2).float().requires_grad_()
        layer = PackedLinear(weight, weight[:, 0])
        assert not layer(draw(1, 4, 2).float()).requires_grad


class TestInt8Linear:
    @given(
        n_rows=st.integers(0, 70),
        input_dim=st.integers(1, 200),
        output_dim=st.integers(1, 70),
        seed=st.integers(0, 99),
    )
    def test_it_is_the_product_to_half_a_step_of_each_factor(
        self, n_rows, input_dim, output_dim, seed
    ):
        # Rows of very different magnitudes, and one of zeros.
        weight = draw(seed, output_dim, input_dim) * draw(seed + 2, output_dim, 1).exp()
        inputs = draw(seed + 1, n_rows, input_dim) * draw(seed + 3, n_rows, 1).exp()
        weight[0] = 0.0
        inputs[:1] = 0.0
        bias = draw(seed + 4, output_dim)
        addend = draw(seed + 5, n_rows, output_dim)
        weight_error = weight.abs().amax(1, keepdim=True) / 254
        input_error = inputs.abs().amax(1, keepdim=True) / 126
        bound = (
            linear(inputs.abs(), weight_error.expand_as(weight))
            + linear(input_error.expand_as(inputs), weight.abs())
            + input_dim * linear(input_error, weight_error)
        )
        product = linear(inputs, weight)
        with_bias = Int8Linear(weight, bias)(inputs.float())
        with_addend = Int8Linear(weight)(inputs.float(), addend.float())
        for result, other in ((with_bias, bias), (with_addend, addend)):
            assert result.dtype == torch.float32
            assert ((result - product - other).abs() <= 1.001 * bound + 1e-5).all()

    def test_the_largest_sums_are_exact(self):
        """
        On CPUs without VNNI, the kernels add two products in 16 bits, which 8-bit inputs overflow.
        """
        signs = (draw(0, 5, 1024) > 0.0).float() * 2.0 - 1.0
        torch.testing.assert_close(Int8Linear(signs)(signs), signs @ signs.T, rtol=1e-6, atol=1e-3)

    @pytest.mark.parametrize(
        "missing",
        [["quantized"], ["onednn"], ["quantized", "onednn"], ["quantized", "onednn", "mkldnn"]],
    )
    def test_missing_operators_are_replaced(self, monkeypatch, caplog, missing):
        operators = SimpleNamespace()
        for name in {"quantized", "onednn", "mkldnn"}.difference(missing):
            setattr(operators, name, getattr(torch.ops, name))
        monkeypatch.setattr(torch, "ops", operators)
        module = fresh_module()
        weight = draw(0, 100, 512).float()
        inputs = draw(1, 7, 512).float()
        expected = linear(inputs, weight)
        result = module.packed_linear(weight, None, torch.int8)(inputs)
        assert (result - expected).abs().max() < 0.02 * expected.abs().max()
        # ARM has no fbgemm.
        has_fbgemm = "fbgemm" in torch.backends.quantized.supported_engines
        is_int8 = "onednn" not in missing or (has_fbgemm and "quantized" not in missing)
        assert torch.allclose(result, expected, 1e-4, 1e-4) != is_int8
        assert len(caplog.records) <= len(missing)
        precision = "int8" if is_int8 else "float32"
        assert module.kernel_name("cpu", "int8").startswith(f"{precision} by ")
        library = "torch" if "mkldnn" in missing else "onednn"
        assert module.kernel_name("cpu", "float32") == f"float32 by {library}"

    def test_the_kernels_give_equal_results(self, monkeypatch):
        weight = draw(0, 100, 512)
        inputs = draw(1, 130, 512).float()

        def result_by(instructions: str) -> torch.Tensor:
            module = fresh_module()
            monkeypatch.setattr(module, "cpu_instructions", lambda: instructions)
            return module.Int8Linear(weight)(inputs)

        torch.testing.assert_close(result_by("avx2"), result_by("vnni"), rtol=1e-6, atol=0)

    def test_each_row_is_independent_of_the_other_rows(self):
        layer = Int8Linear(draw(0, 100, 512))
        inputs = draw(1, 130, 512).float()
        inputs[3] *= 100.0
        expected = layer(inputs)
        for n_rows in (1, 2, 64, 129):
            result = layer(inputs[:n_rows])
            torch.testing.assert_close(result, expected[:n_rows], rtol=1e-6, atol=0)


class TestStackedLinear:
    @given(n=st.integers(1, 3), **SIZES)
    def test_each_is_a_product(self, n, n_rows, input_dim, output_dim, dtype, seed):
        """The rows are views of a larger tensor, like the rows of a step."""
        weights = draw(seed, n, output_dim, input_dim)
        biases = draw(seed + 2, n, output_dim)
        all_inputs = draw(seed + 1, n, n_rows + 3, input_dim)
        all_addends = draw(seed + 3, n, n_rows + 3, output_dim)
        inputs = all_inputs[:, 2:-1]
        addends = all_addends[:, 2:-1]
        rows = all_inputs.to(dtype)[:, 2:-1]
        with_bias = StackedLinear(weights, biases, dtype=dtype)(rows)
        with_addend = StackedLinear(weights, dtype=dtype)(rows, all_addends.to(dtype)[:, 2:-1])
        assert len(with_bias) == len(with_addend) == n
        for i in range(n):
            assert_is_the_product(with_bias[i], inputs[i], weights[i], biases[i], dtype)
            assert_is_the_product(with_addend[i], inputs[i], weights[i], addends[i], dtype)


KERNELS = """
import ctypes
import torch
from elmo_tasks.bilm.packed_linear import PackedLinear

def megabytes():
    ctypes.CDLL(None).malloc_trim(0)
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

linear, inputs = PackedLinear(torch.randn(2048, 256)), torch.randn(600, 256)
for n_rows in range(1, 601):
    linear(inputs[:n_rows])
    if n_rows == 300:
        before = megabytes()
print(megabytes() - before)
"""


@pytest.mark.weekly
@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_kernels_do_not_pile_up():
    """300 more numbers of rows take 86 MB if torch keeps all of their kernels."""
    command = [sys.executable, "-c", KERNELS]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(process.stdout) < 30.0
