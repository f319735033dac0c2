import logging
import os
from types import SimpleNamespace

import pytest
import torch

from elmo_tasks.bilm.lstm import cell, fast_cell

triton = pytest.importorskip("triton")

from elmo_tasks.bilm.lstm import triton_cell  # noqa: E402

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def without_clip(products, memory, clip, **others):
    return cell.cell_forward(products, memory, None, **others)


def not_a_number(*arguments, **others):
    return cell.cell_backward(*arguments, **others) * torch.nan


def raising(*arguments, **others):
    raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.\nmore")


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Torch in place of the kernels, in a process that has tested none; a test may replace them."""
    monkeypatch.setattr(triton_cell, "cell_forward", cell.cell_forward)
    monkeypatch.setattr(triton_cell, "cell_backward", cell.cell_backward)
    monkeypatch.setattr(fast_cell, "_VERDICTS", {})
    monkeypatch.setattr(fast_cell, "_WARNED", {})
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.delenv("ELMO_TASKS_CUDA_GRAPHS", raising=False)
    return monkeypatch


# What may be wrong with the kernels, and the reason in the warning.
DEFECTS = {
    "another result": ("cell_forward", without_clip, "of 300 units differs by"),
    "not a number": ("cell_backward", not_a_number, "d_memory of 5 units differs by nan"),
    "no compiler": ("cell_forward", raising, "RuntimeError: Failed to find C compiler."),
}


def on_gpu(dtype: torch.dtype = torch.float32) -> SimpleNamespace:
    return SimpleNamespace(is_cuda=True, dtype=dtype, device=GPU)


class TestUsesTriton:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
    def test_kernels_that_equal_torch_are_used(self, kernels, dtype):
        """Oracle: by hand; torch itself stands for the kernels."""
        assert fast_cell.first_difference(CPU, dtype) is None

    @pytest.mark.parametrize("name", DEFECTS)
    def test_others_are_not_and_there_is_one_warning(self, kernels, caplog, name):
        """Oracle: by hand; for each type, and for a second GPU."""
        attribute, defect, reason = DEFECTS[name]
        kernels.setattr(triton_cell, attribute, defect)
        test = fast_cell.first_difference
        kernels.setattr(fast_cell, "first_difference", lambda device, dtype: test(CPU, dtype))
        with caplog.at_level(logging.WARNING):
            for dtype in (torch.float32, torch.bfloat16, torch.float32):
                assert not fast_cell.uses_triton(on_gpu(), dtype)
        (record,) = caplog.records
        assert reason in record.getMessage() and "\n" not in record.getMessage()
        assert "cuda:0" in record.getMessage() and "check-gpu" in record.getMessage()

    def test_they_are_tested_once_for_each_type(self, kernels):
        """Oracle: the calls of the test."""
        calls = []
        kernels.setattr(fast_cell, "first_difference", lambda *key: calls.append(key))
        for dtype in (torch.float32, torch.bfloat16) * 2:
            assert fast_cell.uses_triton(on_gpu(), dtype)
        assert calls == [(GPU, torch.float32), (GPU, torch.bfloat16)]

    def test_where_it_is_not_used(self, kernels, caplog):
        """Oracle: by hand: on a CPU, in float64, switched off, without Triton; nothing is tested, nothing logged."""

        def fail(*arguments):
            raise AssertionError("nothing is to be tested")

        kernels.setattr(fast_cell, "first_difference", fail)
        assert not fast_cell.uses_triton(torch.zeros(1), torch.float32)
        assert not fast_cell.uses_triton(on_gpu(torch.float64), torch.float64)
        with kernels.context() as patch:
            patch.setenv("ELMO_TASKS_CUDA_GRAPHS", "0")
            assert not fast_cell.uses_triton(on_gpu(), torch.float32)
        with kernels.context() as patch:
            patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
            assert not fast_cell.uses_triton(on_gpu(), torch.float32)
        assert not fast_cell._VERDICTS
        kernels.setattr(fast_cell, "find_spec", lambda name: None)
        assert not fast_cell.uses_triton(on_gpu(), torch.float32)
        assert not caplog.records


class TestImplementation:
    @pytest.mark.parametrize(("is_used", "expected"), [(False, cell), (True, triton_cell)])
    def test_it_is_the_one_that_was_chosen(self, kernels, is_used, expected):
        """Oracle: by hand."""
        kernels.setattr(fast_cell, "uses_triton", lambda memory, dtype: is_used)
        assert fast_cell.implementation(torch.zeros(1), torch.float32) is expected


@pytest.mark.skipif(not IS_INTERPRETED, reason="done by TestKernelsOnACpu, in Triton's interpreter")
class TestInTheInterpreter:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_the_kernels_pass_their_test(self, dtype):
        """Oracle: torch."""
        assert fast_cell.first_difference(CPU, dtype) is None
