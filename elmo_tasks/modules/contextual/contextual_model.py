"""The contextual model that all embedders of a task model share."""

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal

import torch
from allennlp.common import Registrable

from elmo_tasks.bilm import BilmOutput, LayerCache
from elmo_tasks.bilm.frozen_value import WeightsState

__all__ = ["ContextualModel", "SharedPass", "configured_cache"]


class ContextualModel(torch.nn.Module, Registrable):
    """
    The model that the `elmo` embedders of a task model share: "bilm" (the default in a config) or
    "transformer". It computes all layers of a batch once, as a `BilmOutput`; each embedder mixes
    them with its own weights.
    """

    default_implementation = "bilm"

    # The number of layers, including the context-insensitive lowest layer, and the units of each.
    num_layers: int
    output_dim: int

    @property
    def summary(self) -> str:
        """A few words for people: which model, and the precision of its products."""
        return type(self).__name__


def configured_cache(
    folder: str | None, dtype: Literal["float32", "float16"], max_bytes: int | None
) -> LayerCache | None:
    """The cache of a config, by default in the folder `ELMO_TASKS_CACHE`, if that is set."""
    folder = folder or os.environ.get("ELMO_TASKS_CACHE")
    return LayerCache(folder, dtype=dtype, max_bytes=max_bytes) if folder else None


class SharedPass(threading.local):
    """
    Stores the layers of the last batch for all embedders, separately for each thread. A batch is
    identified by its tensor of ids, not by the ids themselves. It is recomputed if the tensor or a
    weight was changed in place, and after a gradient reached the layers, because the backward pass
    frees their graph. Copies start empty.
    """

    def __init__(self) -> None:
        self._last: _Pass | None = None

    def output(
        self,
        batch: torch.Tensor,
        weights: Iterable[torch.Tensor],
        mode: Hashable,
        compute: Callable[[], BilmOutput],
    ) -> BilmOutput:
        """`compute()`, or the last output if the batch, the weights and `mode` are the same."""
        # torch does not count changes of inference tensors.
        if torch.is_inference_mode_enabled() or batch.is_inference():
            return compute()
        tensors = [batch, *weights]
        if self._last is not None:
            output = self._last.output_of(batch, tensors, mode)
            if output is not None:
                return output
        # The memory of the old output is freed before the new one is computed.
        self._last = None
        output = compute()
        self._last = _Pass(batch, tensors, mode, output)
        return output

    def __reduce__(self) -> tuple[type["SharedPass"], tuple[()]]:
        return SharedPass, ()


class _Pass:
    """
    The output for one batch, until its tensor is gone or a gradient reaches it, in any thread.
    """

    def __init__(
        self, batch: torch.Tensor, tensors: list[torch.Tensor], mode: Hashable, output: BilmOutput
    ) -> None:
        self._batch = weakref.ref(batch, self._forget)
        self._mode = mode
        self._state: WeightsState | None = WeightsState(tensors)
        self._output: BilmOutput | None = output
        for layer in output.layers:
            if layer.requires_grad:
                layer.register_hook(self._forget)

    def output_of(
        self, batch: torch.Tensor, tensors: list[torch.Tensor], mode: Hashable
    ) -> BilmOutput | None:
        """The output, if it is of this batch and these weights."""
        # Read once, because another thread may forget both at any time.
        output = self._output
        state = self._state
        if self._batch() is not batch or self._mode != mode:
            return None
        if state is None or not state.is_of(tensors):
            return None
        return output

    def _forget(self, *_: Any) -> None:
        self._output = None
        self._state = None
