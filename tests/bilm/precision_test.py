import pytest
import torch

from elmo_tasks.bilm.precision import precision_of_training, precision_on


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    "capability, has_triton_steps, expected",
    [
        ((7, 5), True, "float32"),
        ((8, 0), False, "float32"),
        ((8, 0), True, "bf16"),
        ((9, 0), True, "bf16"),
    ],
)
def test_auto_is_bf16_on_a_gpu_that_has_it_with_triton(
    is_large, capability, has_triton_steps, expected, monkeypatch
):
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda _: capability)
    monkeypatch.setattr("elmo_tasks.bilm.precision.has_triton_steps", lambda _: has_triton_steps)
    precision_on.cache_clear()
    device = torch.device("cuda:0")
    assert precision_on(device, is_large, "auto") == expected
    # At the small size, training was faster in float32.
    assert precision_of_training(device, is_large) == (expected if is_large else "float32")
    precision_on.cache_clear()
