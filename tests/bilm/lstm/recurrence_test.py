from typing import Any

import pytest
import torch

from elmo_tasks.bilm.lstm import recurrence
from elmo_tasks.bilm.lstm.recurrence import LstmWeights, RecurrenceFunction, run_lstms

BATCH_SIZES = [4, 4, 3, 1, 1]
CLIPS = 0.8, 0.4


def tensors(dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Inputs and parameters of two LSTMs with 3 inputs, 5 units and 2 outputs, all with gradients."""
    generator = torch.Generator().manual_seed(0)
    shapes = {
        "inputs": (2, sum(BATCH_SIZES), 3),
        "kernel": (2, 5, 20),
        "bias": (2, 20),
        "projection": (2, 5, 2),
        "output": (2, BATCH_SIZES[0], 2),
        "memory": (2, BATCH_SIZES[0], 5),
    }
    return {
        name: torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_() for name, shape in shapes.items()
    }


def weights_of(given: dict[str, torch.Tensor]) -> LstmWeights:
    parts = (given[name].detach() for name in ("kernel", "bias", "projection"))
    return LstmWeights.of(*parts, *CLIPS, torch.float64)


def run_detached(given: dict[str, torch.Tensor], **kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    memory = given["memory"].detach().clone()
    outputs = run_lstms(
        weights_of(given), given["inputs"].detach(), BATCH_SIZES, given["output"].detach(), memory, **kept
    )
    return outputs, memory


def apply(given: dict[str, torch.Tensor]) -> Any:
    return RecurrenceFunction.apply(*given.values(), BATCH_SIZES, *CLIPS)


class TestRun:
    @pytest.mark.parametrize("rows_at_once", [1, 2, 5, 9, 1000])
    def test_how_many_steps_share_an_input_product_changes_nothing(self, monkeypatch, rows_at_once):
        """Oracle: a product for each step."""
        given = tensors()
        monkeypatch.setitem(recurrence._ROWS_AT_ONCE, "cpu", 1)
        alone = run_detached(given)
        monkeypatch.setitem(recurrence._ROWS_AT_ONCE, "cpu", rows_at_once)
        for one, other in zip(alone, run_detached(given), strict=True):
            torch.testing.assert_close(one, other, rtol=0.0, atol=1e-14)

    def test_what_backward_needs_is_kept_and_changes_nothing(self):
        """Oracle: a run that keeps nothing; the outputs from the units that were kept."""
        given, n_words = tensors(), sum(BATCH_SIZES)
        kept = {
            name: torch.full((2, n_words, dim), torch.nan, dtype=torch.float64)
            for name, dim in (("gates", 20), ("memories", 5), ("hidden", 5))
        }
        outputs, memory = run_detached(given, **kept)
        for one, other in zip((outputs, memory), run_detached(given), strict=True):
            assert torch.equal(one, other)
        assert not any(tensor.isnan().any() for tensor in kept.values())
        projected = (2.0 * kept["hidden"] @ given["projection"].detach()).clamp(-CLIPS[1], CLIPS[1])
        torch.testing.assert_close(projected, outputs)
        # The last word of the longest sentence is the last row.
        assert torch.equal(kept["memories"][:, -1], memory[:, 0])


class TestRecurrenceFunction:
    def test_forward_is_the_run_without_gradients(self):
        """Oracle: `run_lstms`."""
        given = tensors()
        for one, other in zip(apply(given), run_detached(given), strict=True):
            assert torch.equal(one, other)

    def test_the_state_that_comes_in_is_not_changed(self):
        """Oracle: a copy from before."""
        given = tensors()
        before = {name: tensor.detach().clone() for name, tensor in given.items()}
        outputs, memory = apply(given)
        (outputs.sum() + memory.sum()).backward()
        assert all(torch.equal(before[name], tensor) for name, tensor in given.items())

    def test_one_of_the_two_outputs_may_go_unused(self):
        """Oracle: gradients by finite differences."""
        for part in range(2):
            assert torch.autograd.gradcheck(
                lambda *each, part=part: RecurrenceFunction.apply(*each, BATCH_SIZES, *CLIPS)[part],
                tuple(tensors().values()),
            )

    def test_gradients_of_gradients_are_refused(self):
        """Oracle: the error that torch raises where a second derivative would be wrong."""
        given = tensors()
        (gradient,) = torch.autograd.grad(apply(given)[0].square().sum(), given["inputs"], create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            gradient.sum().backward()

    def test_backward_in_autocast_is_what_it_is_outside(self):
        """Oracle: backward outside."""
        gradients = []
        for enabled in (False, True):
            given = tensors(torch.float32)
            loss = apply(given)[0].square().sum()
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                loss.backward()
            gradients.append([tensor.grad for tensor in given.values()])
        for one, other in zip(*gradients, strict=True):
            assert torch.equal(one, other)
