"""Whether weights changed since they were last used, and their digest."""

import hashlib
from collections.abc import Iterable, Mapping

import torch

from elmo_tasks.bilm.options import BilmOptions

__all__ = ["WeightsState", "bilm_digest", "n_changes", "weights_digest"]


def n_changes(tensor: torch.Tensor) -> int | None:
    """
    How often a tensor was changed in place, loading included. Changes by way of `tensor.data`, and by torch's fused
    optimizers, are not counted; of tensors that were made in inference mode none are, and their number is `None`.
    """
    return None if tensor.is_inference() else tensor._version


class WeightsState:
    """
    The state of some weights at one moment, without a copy of them. `is_of` tells whether weights are still the same
    tensors, unchanged; see `n_changes` for what it cannot see.

    A copy of a state, pickled or not, is that of no weights at all.

    # Parameters

    weights
        The weights, in an order that stays.
    """

    def __init__(self, weights: Iterable[torch.Tensor] = ()) -> None:
        # Aliases: while they are held, no other tensor can be given the same place in memory.
        self._weights = [(weight.detach(), n_changes(weight)) for weight in weights]

    def is_of(self, weights: Iterable[torch.Tensor]) -> bool:
        """
        Whether these weights are the ones of the state: the same memory, shape, strides, type and device, and not
        changed since.
        """
        weights = list(weights)
        return len(weights) == len(self._weights) and all(
            weight.data_ptr() == old.data_ptr()
            and n_changes(weight) == changes
            and weight.shape == old.shape
            and weight.stride() == old.stride()
            and weight.dtype == old.dtype
            and weight.device == old.device
            for weight, (old, changes) in zip(weights, self._weights, strict=True)
        )

    def __reduce__(self) -> tuple[type["WeightsState"], tuple[()]]:
        return WeightsState, ()


def bilm_digest(options: BilmOptions, weights: Mapping[str, torch.Tensor]) -> bytes:
    """
    A digest of 32 bytes of the options, and of the name, type, shape and values of each weight. It takes half a second
    for the paper's weights.
    """
    start_state = "" if options.start_state == "zero" else f", from the {options.start_state} state"
    return weights_digest(f"{options!r}{start_state}", weights)


def weights_digest(about: str, weights: Mapping[str, torch.Tensor]) -> bytes:
    """A digest of 32 bytes of a text, and of the name, type, shape and values of each weight."""
    digest = hashlib.blake2b(about.encode(), digest_size=32)
    for name, weight in sorted(weights.items()):
        digest.update(repr((name, weight.dtype, tuple(weight.shape))).encode())
        digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.digest()
