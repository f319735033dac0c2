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
    drawn = {}
    for name, shape in shapes.items():
        drawn[name] = torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()
    return drawn


def apply(
    inputs: torch.Tensor, kernel: torch.Tensor, bias: torch.Tensor, projection: torch.Tensor
) -> Any:
    return ProjectedLstmFunction.apply(inputs, kernel, bias, projection, BATCH_SIZES, CLIPS)


def gradients_of(arguments: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.grad for tensor in arguments.values()]


class TestProjectedLstmFunction:
    @pytest.mark.parametrize("rows_at_once", [1, 5, 1024])
    def test_gradients_in_chunks_of_any_size(self, rows_at_once, monkeypatch):
        monkeypatch.setitem(training.GRADIENT_ROWS_AT_ONCE, "cpu", rows_at_once)
        monkeypatch.setattr(torch_steps, "GATES_AT_ONCE", 12 * rows_at_once)
        assert torch.autograd.gradcheck(apply, tuple(tensors().values()))

    def test_stacked_products_equal_a_list_of_products(self, monkeypatch):

        def outputs_and_gradients(is_stacked: bool) -> list[torch.Tensor]:
            monkeypatch.setitem(IS_GPU, "cpu", is_stacked)
            arguments = tensors()
            outputs = apply(**arguments)
            outputs.square().sum().backward()
            return [outputs, *gradients_of(arguments)]

        stacked = outputs_and_gradients(is_stacked=True)
        listed = outputs_and_gradients(is_stacked=False)
        torch.testing.assert_close(stacked, listed, rtol=0, atol=1e-14)

    def test_autocast_does_not_change_backward(self):

        def gradients(with_autocast: bool) -> list[torch.Tensor]:
            arguments = tensors(torch.float32)
            loss = apply(**arguments).square().sum()
            with torch.autocast("cpu", torch.bfloat16, enabled=with_autocast):
                loss.backward()
            return gradients_of(arguments)

        pairs = zip(gradients(with_autocast=True), gradients(with_autocast=False), strict=True)
        for gradient, expected in pairs:
            assert torch.equal(gradient, expected)
