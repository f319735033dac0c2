"""The precision of matrix products: float32, TF32 or bfloat16."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["PRECISIONS", "computing_dtype", "supports_bf16", "tf32_is_on", "tf32_set_to"]

PRECISIONS = ("float32", "tf32", "bf16")


def supports_bf16(device: torch.device) -> bool:
    """Whether a device has instructions for products of bfloat16, without which they are slow."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # A private name: without it, no CPU is known to have them.
    return device.type == "cpu" and bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


def tf32_is_on() -> bool:
    """Whether CUDA rounds the factors of float32 products to TF32."""
    matmul = torch.backends.cuda.matmul
    if hasattr(matmul, "fp32_precision"):
        return bool(matmul.fp32_precision == "tf32")
    return bool(matmul.allow_tf32)


@contextmanager
def tf32_set_to(rounds: bool) -> Iterator[None]:
    """Sets whether CUDA rounds the factors of float32 products to TF32, and restores the setting afterwards."""
    matmul = torch.backends.cuda.matmul
    # torch has an old and a new name for this. Once the new one was used, torch refuses to read the old one.
    is_new = hasattr(matmul, "fp32_precision")
    name = "fp32_precision" if is_new else "allow_tf32"
    value = ("tf32" if rounds else "ieee") if is_new else rounds
    if tf32_is_on() == rounds:
        # An explicit value, even the same one, would no longer follow the settings that it inherits from.
        yield
        return
    before = getattr(matmul, name)
    setattr(matmul, name, value)
    try:
        yield
    finally:
        setattr(matmul, name, before)


def computing_dtype(precision: str, parameter: torch.Tensor) -> torch.dtype:
    """
    The type of products with a parameter: that of autocast if the parameter is trained under autocast, otherwise that
    of `precision`.

    # Raises

    `ValueError`
        If the device cannot compute in this precision.
    """
    if torch.is_grad_enabled() and parameter.requires_grad and torch.is_autocast_enabled(parameter.device.type):
        return torch.get_autocast_dtype(parameter.device.type)
    if precision != "bf16":
        return parameter.dtype
    if not supports_bf16(parameter.device):
        raise ValueError(
            f"precision 'bf16' needs a device with instructions for bfloat16, but {parameter.device} has none (on a "
            "CPU: AVX-512 BF16, which Intel has since Cooper Lake and AMD since Zen 4): set precision to 'float32'"
        )
    return torch.bfloat16
