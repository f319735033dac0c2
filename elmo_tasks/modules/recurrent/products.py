"""The type of the products of a layer with its weights, under autocast and without it."""

import torch

__all__ = ["type_of_products"]


def type_of_products(weight: torch.Tensor) -> torch.dtype:
    """
    bfloat16 under autocast to it on a CPU for weights of float32, as autocast itself decides; otherwise the type of the
    weights. States, gates, sums and outputs keep the type of the weights, and so do the products of one word at a time:
    of the few rows of a step, converting them takes as long as is gained.
    """
    is_rounded = (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
    )
    return torch.bfloat16 if is_rounded else weight.dtype
