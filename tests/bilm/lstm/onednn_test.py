import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import linear

from elmo_tasks.bilm.lstm import onednn
from elmo_tasks.bilm.lstm.packed_linear import PackedLinear


class Operators(SimpleNamespace):
    """oneDNN's operators in torch, in plain torch, so that these tests need no oneDNN; a test may replace them."""

    def __init__(self) -> None:
        super().__init__(_linear_pointwise=alone, _reorder_linear_weight=lambda weight, rows: weight.clone())
        self._is_mkldnn_bf16_supported = lambda: True


def alone(inputs, weight, bias, activation, scalars, algorithm):
    assert (activation, scalars, algorithm) == ("none", [], "")
    return linear(inputs, weight, bias)


def binary(inputs, addend, weight, bias, operation):
    assert (bias, operation) == (None, "add")
    return linear(inputs, weight) + addend


alone.binary = binary


def pointwise(first: Callable[..., torch.Tensor], second: object = binary) -> Callable[..., torch.Tensor]:
    """An operator with its form for an addend."""

    def operator(*arguments):
        return first(*arguments)

    operator.binary = second
    return operator


def wrong_if(n_rows: int | None = None, *, with_bias: bool | None = None) -> Callable[..., torch.Tensor]:
    """An operator whose last number is off by one, for this number of rows and with or without a bias."""

    def first(inputs, weight, bias, *settings):
        result = alone(inputs, weight, bias, *settings)
        if n_rows in (None, len(inputs)) and with_bias in (None, bias is not None):
            result[-1, -1] += 1.0
        return result

    return pointwise(first)


@pytest.fixture
def operators(monkeypatch: pytest.MonkeyPatch) -> Operators:
    """A process in which no operator was tested yet."""
    found = Operators()
    monkeypatch.setattr(onednn.torch, "ops", SimpleNamespace(mkldnn=found))
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(onednn, "_VERDICTS", {})
    monkeypatch.setattr(onednn, "_WARNED", {})
    return found


def raising(*arguments):
    raise RuntimeError("could not create a primitive\nC++ traceback")


# What may have happened to the operators: which one, what it is now (`None`: gone), and the reason in the warning.
CHANGES = {
    "gone": ("_linear_pointwise", None, "AttributeError"),
    "packing gone": ("_reorder_linear_weight", None, "AttributeError"),
    "sum gone": ("_linear_pointwise", pointwise(alone, None), "TypeError"),
    "raising": ("_linear_pointwise", pointwise(raising), r"RuntimeError: could not create a primitive\)"),
    "packing raising": ("_reorder_linear_weight", raising, "RuntimeError: could not create a primitive"),
    "signature": (
        "_linear_pointwise",
        pointwise(lambda inputs, weight, bias: linear(inputs, weight, bias)),
        "TypeError",
    ),
    "packing's signature": ("_reorder_linear_weight", lambda weight: weight, "TypeError"),
    "wrong": ("_linear_pointwise", wrong_if(), "another result alone, of 1 rows and a weight of 64 x 192"),
    "wrong for one row": ("_linear_pointwise", wrong_if(1), "another result alone, of 1 rows"),
    "wrong for few": ("_linear_pointwise", wrong_if(5), "another result alone, of 5 rows"),
    "wrong for many": ("_linear_pointwise", wrong_if(130), "another result alone, of 130 rows"),
    "wrong with a bias": ("_linear_pointwise", wrong_if(with_bias=True), "another result with a bias, of 1 rows"),
    "wrong sum": (
        "_linear_pointwise",
        pointwise(alone, lambda inputs, addend, weight, *_: linear(inputs, weight) - addend),
        "another result with an addend, of 1 rows",
    ),
    "NaN": ("_linear_pointwise", pointwise(lambda *each: alone(*each) * torch.nan), "another result alone"),
    "another shape": ("_linear_pointwise", pointwise(lambda *each: alone(*each)[None]), "another result alone"),
    "another type": ("_linear_pointwise", pointwise(lambda *each: alone(*each).double()), "another result alone"),
    "transposed": ("_reorder_linear_weight", lambda weight, rows: weight.flip(0), "another result alone"),
}


class TestIsUsable:
    @pytest.mark.parametrize("change", CHANGES)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_an_operator_that_changed_is_replaced_with_one_warning(self, operators, caplog, change, dtype):
        """Oracle: `torch.nn.functional.linear`; the log: one warning, with the reason and what it costs."""
        name, operator, reason = CHANGES[change]
        if operator is None:
            delattr(operators, name)
        else:
            setattr(operators, name, operator)
        weight, bias, inputs, addend = (torch.randn(shape).to(dtype) for shape in ((5, 7), (5,), (4, 7), (4, 5)))
        for _ in range(3):
            assert torch.equal(PackedLinear(weight, bias)(inputs), linear(inputs, weight, bias))
            assert torch.equal(PackedLinear(weight)(inputs), linear(inputs, weight))
            assert torch.equal(PackedLinear(weight)(inputs, addend), linear(inputs, weight) + addend)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert caplog.records[0].name == "elmo_tasks.bilm.lstm.onednn"
        message = caplog.records[0].getMessage()
        assert re.search(reason, message), message
        assert "1.7 times slower" in message
        assert torch.__version__ in message

    def test_another_type_that_fails_is_no_second_warning(self, operators, caplog):
        """Oracle: the log."""
        del operators._linear_pointwise
        assert not onednn.is_usable(torch.float32)
        assert not onednn.is_usable(torch.bfloat16)
        assert len(caplog.records) == 1

    def test_operators_that_work_are_used_and_tested_once(self, operators, caplog):
        """Oracle: the calls of the operator, and the log."""
        calls = []

        def operator(*arguments):
            calls.append(arguments)
            return alone(*arguments)

        operators._linear_pointwise = pointwise(operator)
        assert onednn.is_usable(torch.float32)
        assert calls
        calls.clear()
        product = PackedLinear(torch.ones(2, 3))
        assert not calls
        assert product(torch.ones(1, 3)).tolist() == [[3.0, 3.0]]
        assert len(calls) == 1
        assert not caplog.records

    def test_one_type_may_work_where_another_fails(self, operators, caplog):
        """Oracle: the verdict for each; the type is in the warning."""

        def operator(inputs, *arguments):
            return alone(inputs, *arguments) + (inputs.dtype == torch.bfloat16)

        operators._linear_pointwise = pointwise(operator)
        assert onednn.is_usable(torch.float32)
        assert not onednn.is_usable(torch.bfloat16)
        assert "torch.bfloat16" in caplog.text

    def test_a_cpu_without_bfloat16_is_no_warning(self, operators, caplog):
        """Oracle: `torch.nn.functional.linear`, which takes bfloat16 on any CPU; the log."""
        operators._is_mkldnn_bf16_supported = lambda: False
        weight, inputs = torch.randn(5, 7).bfloat16(), torch.randn(3, 7).bfloat16()
        product = PackedLinear(weight)
        assert not product._is_packed
        assert torch.equal(product(inputs), linear(inputs, weight))
        assert not caplog.records

    def test_without_the_question_for_bfloat16_it_is_a_warning(self, operators, caplog):
        """Oracle: the log; float32 does not need it."""
        del operators._is_mkldnn_bf16_supported
        assert not onednn.is_usable(torch.bfloat16)
        assert "_is_mkldnn_bf16_supported" in caplog.text
        assert onednn.is_usable(torch.float32)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
    def test_other_types_are_not_tried(self, operators, caplog, dtype):
        """Oracle: operators that raise; the log."""
        operators._linear_pointwise = raising
        assert not onednn.is_usable(dtype)
        assert not caplog.records

    def test_a_torch_without_one_dnn_is_no_warning(self, operators, monkeypatch, caplog):
        """Oracle: operators that raise; the log."""
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
        operators._linear_pointwise = raising
        assert not onednn.is_usable(torch.float32)
        assert not caplog.records

    def test_threads_warn_once_together(self, operators, caplog):
        """Oracle: the verdict of each and the log."""
        operators._linear_pointwise = raising
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(onednn.is_usable, [torch.float32, torch.bfloat16] * 16))
        assert found == [False] * 32
        assert len(caplog.records) == 1

    def test_the_settings_of_the_process_do_not_matter(self, monkeypatch):
        """Oracle: the verdict on the operators of this torch, if it has them, without the settings."""
        expected = onednn.is_usable(torch.float32)
        default, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
        try:
            torch.set_default_dtype(torch.float64)
            torch.set_float32_matmul_precision("medium")
            for setting in (torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode(), torch.device("meta")):
                monkeypatch.setattr(onednn, "_VERDICTS", {})
                with setting:
                    assert onednn.is_usable(torch.float32) == expected
        finally:
            torch.set_default_dtype(default)
            torch.set_float32_matmul_precision(precision)

    def test_it_draws_no_random_numbers(self, operators):
        """Oracle: the state of torch's generator."""
        before = torch.get_rng_state()
        assert onednn.is_usable(torch.float32)
        assert torch.equal(torch.get_rng_state(), before)
