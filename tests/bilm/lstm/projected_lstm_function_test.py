from typing import Any

import pytest
import torch

from elmo_tasks.bilm.lstm import torch_steps, training
from elmo_tasks.bilm.lstm.recurrence import Clips
from elmo_tasks.bilm.lstm.training import ProjectedLstmFunction
from elmo_tasks.bilm.packed_linear import IS_GPU

BATCH_SIZES = [3, 3, 2, 1]
CLIPS = Clips(0.4, 0.4)


def tensors(dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """
    Inputs and parameters of two LSTMs with 3 units and 2 inputs and outputs, all with gradients.
    """
    generator = torch.Generator().manual_seed(0)
    shapes = {
        "inputs": (2, sum(BATCH_SIZES), 2),
        "kernel": (2, 4, 12),
        "bias": (2, 12),
        "projection": (2, 3, 2),
    }
    return {
        name: torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()
        for name, shape in shapes.items()
    }


def apply(given: dict[str, torch.Tensor]) -> Any:
    return ProjectedLstmFunction.apply(*given.values(), BATCH_SIZES, CLIPS)


class TestProjectedLstmFunction:
    @pytest.mark.parametrize("rows_at_once", [1, 5, 1024])
    def test_gradients_in_spans_of_any_size(self, rows_at_once, monkeypatch):
        monkeypatch.setitem(training.GRADIENT_ROWS_AT_ONCE, "cpu", rows_at_once)
        monkeypatch.setattr(torch_steps, "GATES_AT_ONCE", 12 * rows_at_once)
        assert torch.autograd.gradcheck(
            lambda *each: ProjectedLstmFunction.apply(*each, BATCH_SIZES, CLIPS),
            tuple(tensors().values()),
        )

    def test_stacked_products_equal_a_list_of_products(self, monkeypatch):
        results = []
        for is_stacked in (False, True):
            monkeypatch.setitem(IS_GPU, "cpu", is_stacked)
            given = tensors()
            outputs = apply(given)
            outputs.square().sum().backward()
            results.append([outputs, *(tensor.grad for tensor in given.values())])
        torch.testing.assert_close(*results, rtol=0, atol=1e-14)

    def test_autocast_does_not_change_backward(self):
        gradients = []
        for enabled in (False, True):
            given = tensors(torch.float32)
            loss = apply(given).square().sum()
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                loss.backward()
            gradients.append([tensor.grad for tensor in given.values()])
        for one, other in zip(*gradients, strict=True):
            assert torch.equal(one, other)
