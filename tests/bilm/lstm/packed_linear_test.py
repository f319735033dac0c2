import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import linear

from elmo_tasks.bilm.lstm.packed_linear import PackedLinear, StackedLinear
from elmo_tasks.bilm.lstm.precision import computing_dtype, supports_bf16, tf32_is_on, tf32_set_to
from elmo_tasks.bilm.lstm.weight_cache import WeightCache
from tests.devices import DEVICES

CPU = torch.device("cpu")
# How far a result may be from the exact one, relative to the sum of the magnitudes that it adds up.
# A CPU without instructions for bfloat16 may round a product and then its sum.
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
    @settings(deadline=None, max_examples=100)
    @given(**SIZES)
    def test_it_is_the_product(self, n_rows, input_dim, output_dim, dtype, seed):
        """Oracle: `torch.nn.functional.linear` in float64, of what is left of the factors in the type."""
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
    def test_a_row_does_not_depend_on_how_many_there_are(self, monkeypatch, input_dim, output_dim, atol):
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
        product = PackedLinear(weight.requires_grad_(), weight[:, 0])
        assert not product(draw(1, 4, 2).float()).requires_grad

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
    @settings(deadline=None, max_examples=50)
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


class Counting:
    """A `WeightCache` of the parameters' sum, and how often it was made."""

    def __init__(self) -> None:
        self.prepared: WeightCache[float] = WeightCache()
        self.n_made = 0

    def __call__(self, parameters: list[torch.Tensor], key: object = None) -> int:
        def make() -> float:
            self.n_made += 1
            return sum(float(parameter.double().sum()) for parameter in parameters)

        assert self.prepared(parameters, key, make) == sum(float(each.detach().double().sum()) for each in parameters)
        return self.n_made


class TestWeightCache:
    def test_what_stays_is_made_once(self):
        """Oracle: how often it was made."""
        prepared, linear = Counting(), torch.nn.Linear(2, 3).requires_grad_(False)
        assert [prepared(list(linear.parameters())) for _ in range(3)] == [1, 1, 1]

    def test_of_what_is_trained_nothing_is_kept(self):
        """Oracle: how often it was made; AllenNLP's moving averages go in and out by way of `.data`, unseen."""
        prepared, linear = Counting(), torch.nn.Linear(2, 3)
        assert [prepared(list(linear.parameters())) for _ in range(3)] == [1, 2, 3]

    def test_what_changes_is_made_again(self):
        """Oracle: how often it was made: in place, by loading, by assigning, by another type, of fewer parameters."""
        prepared, linear = Counting(), torch.nn.Linear(2, 3).requires_grad_(False)

        def times() -> int:
            return prepared(list(linear.parameters()))

        assert times() == 1
        linear.bias[1] = 4.0
        assert (times(), times()) == (2, 2)
        torch.nn.init.normal_(linear.weight)
        assert (times(), times()) == (3, 3)
        linear.load_state_dict(torch.nn.Linear(2, 3).state_dict())
        assert (times(), times()) == (4, 4)
        linear.load_state_dict(torch.nn.Linear(2, 3).requires_grad_(False).state_dict(), assign=True)
        linear.requires_grad_(False)
        assert (times(), times()) == (5, 5)
        linear.double()
        assert (times(), times()) == (6, 6)
        assert prepared([linear.weight]) == 7

    def test_equal_parameters_elsewhere_are_others(self):
        """Oracle: how often it was made; the old ones are held, so that none can come to lie where they were."""
        prepared = Counting()
        for n_made in range(1, 20):
            assert prepared([torch.ones(1000)]) == n_made

    def test_another_key_is_made_again(self):
        """Oracle: how often it was made."""
        prepared, parameters = Counting(), [torch.ones(2)]
        keys = [torch.float32, torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]
        assert [prepared(parameters, key) for key in keys] == [1, 1, 2, 2, 3]

    @pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda each: pickle.loads(pickle.dumps(each))])
    def test_copies_begin_with_nothing(self, copied):
        """Oracle: how often it was made; and the value is none that could be pickled."""
        prepared: WeightCache[object] = WeightCache()
        parameters, values = [torch.ones(2)], [lambda: 1, lambda: 2]
        assert prepared(parameters, None, lambda: values[0]) is values[0]
        other = copied(prepared)
        assert other(parameters, None, lambda: values[1]) is values[1]
        assert prepared(parameters, None, lambda: values[1]) is values[0]

    def test_parameters_of_inference_mode_will_do(self):
        """Oracle: how often it was made, in inference mode and after it."""
        prepared = Counting()
        with torch.inference_mode():
            parameters = [torch.ones(3)]
            assert (prepared(parameters), prepared(parameters)) == (1, 1)
        assert prepared(parameters) == 1
        assert prepared([parameters[0].clone()]) == 2

    def test_it_recovers_from_a_failure(self):
        """Oracle: the value, made after a failure with other parameters and with the same."""
        prepared: WeightCache[int] = WeightCache()
        parameters = [torch.ones(2)]

        def fail() -> int:
            raise MemoryError

        assert prepared(parameters, "float32", lambda: 1) == 1
        with pytest.raises(MemoryError):
            prepared(parameters, "bf16", fail)
        assert prepared(parameters, "float32", lambda: 2) == 2

    def test_it_is_made_without_gradients(self):
        """Oracle: torch."""
        prepared: WeightCache[torch.Tensor] = WeightCache()
        weight = torch.ones(2, requires_grad=True)
        assert not prepared([weight], None, lambda: 2.0 * weight).requires_grad


class TestComputingDtype:
    def test_without_bf16_it_is_that_of_the_parameters(self):
        """Oracle: the parameters' type, whatever the device can do."""
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            for precision in ("float32", "tf32"):
                assert computing_dtype(precision, torch.ones(1, dtype=dtype)) == dtype

    def test_a_cpu_is_asked_for_its_instructions(self, monkeypatch):
        """Oracle: torch's answer, replaced; and the message, which must hold the remedy."""
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
        assert supports_bf16(CPU)
        assert computing_dtype("bf16", torch.ones(1)) == torch.bfloat16
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
        assert not supports_bf16(CPU)
        with pytest.raises(ValueError, match=r"but cpu has none .*AVX-512 BF16.*: set precision to 'float32'"):
            computing_dtype("bf16", torch.ones(1))

    def test_a_torch_that_cannot_be_asked_has_none(self, monkeypatch):
        """Oracle: a torch without its private name for it."""
        monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
        assert not supports_bf16(CPU)

    def test_other_devices_have_none(self):
        """Oracle: devices of which nothing is known."""
        assert not supports_bf16(torch.device("meta"))


class TestRoundingFactors:
    @pytest.mark.parametrize("inside", [False, True])
    @pytest.mark.parametrize("before", [False, True])
    def test_it_is_said_and_taken_back(self, before, inside):
        """Oracle: torch's own setting, inside, after, and after an error."""
        matmul = torch.backends.cuda.matmul
        at_first = matmul.allow_tf32
        try:
            matmul.allow_tf32 = before
            with tf32_set_to(inside):
                assert tf32_is_on() == inside
            assert matmul.allow_tf32 == tf32_is_on() == before
            with pytest.raises(MemoryError), tf32_set_to(inside):
                raise MemoryError
            assert matmul.allow_tf32 == before
        finally:
            matmul.allow_tf32 = at_first

    @pytest.mark.skipif(
        not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="needs a torch with the new names"
    )
    @pytest.mark.parametrize("precision", ["ieee", "tf32"])
    def test_it_bears_the_new_names(self, precision):
        """Oracle: torch's new setting; reading the old one after it is an error, which must not be met."""
        matmul = torch.backends.cuda.matmul
        try:
            matmul.fp32_precision = precision
            for rounds in (False, True):
                with tf32_set_to(rounds):
                    assert tf32_is_on() == rounds
                assert matmul.fp32_precision == precision
        finally:
            matmul.allow_tf32 = False
