import torch

from elmo_tasks.gpu_check import gradients
from elmo_tasks.gpu_check.gradients import gradient_parts
from elmo_tasks.gpu_check.part import Setting, run_parts
from tests.gpu_check.conftest import CPU

SETTING = Setting(CPU, ["tiny"], True)


class TestGradientParts:
    def test_gradients_that_differ_fail_with_their_name(self, monkeypatch):
        """Oracle: the verdict by hand; the second computation is another one for one weight, or no number."""
        computed = gradients._gradients
        for factor, reason in ((1.01, "differs by 1.0e-02"), (torch.nan, "differs by nan")):
            damaged = []

            def computing(bilm, batch, factor=factor, damaged=damaged):
                found = computed(bilm, batch)
                if damaged:
                    found["forward_layers.1.bias"] = found["forward_layers.1.bias"] * factor
                damaged.append(True)
                return found

            monkeypatch.setattr(gradients, "_gradients", computing)
            (result,) = run_parts(gradient_parts(SETTING)[:1], SETTING)
            assert result.verdict == "failed"
            assert result.reason.startswith(f"the gradient of forward_layers.1.bias {reason}")

    def test_a_loss_that_does_not_fall_fails(self, monkeypatch):
        """Oracle: the verdict; the optimizer does nothing."""
        monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)
        monkeypatch.setattr(gradients, "_N_STEPS", 1)
        (result,) = run_parts(gradient_parts(SETTING)[-1:], SETTING)
        assert result.reason.startswith("the loss of one batch must fall in 1 steps, but goes from ")
