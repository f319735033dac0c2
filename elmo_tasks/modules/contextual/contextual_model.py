"""The contextual model that all embedders of a task model share."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from allennlp.common import Registrable

from elmo_tasks.bilm import BilmOutput
from elmo_tasks.bilm.kernels.frozen import WeightsState

__all__ = ["ContextualModel", "SharedPass"]


class ContextualModel(torch.nn.Module, Registrable):
    """
    The model that the `elmo` embedders of a task model share: "bilm" (the default in a config) or "transformer". It
    computes all layers of a batch once, as a `BilmOutput`; each embedder mixes them with its own weights.
    """

    default_implementation = "bilm"

    # The number of layers, including the context-insensitive lowest layer, and the units of each.
    num_layers: int
    output_dim: int


class SharedPass:
    """
    Stores the layers of the last batch for all embedders. A batch is identified by its tensor. It is recomputed if the
    tensor or a weight was changed in place, and after a gradient reached the layers, because the backward pass frees
    their graph. Copies start empty.
    """

    def __init__(self) -> None:
        self._words: Callable[[], torch.Tensor | None] = lambda: None
        self._state, self._mode = WeightsState(), None
        self._output: BilmOutput | None = None

    def output(
        self, words: torch.Tensor, weights: Iterable[torch.Tensor], mode: Any, compute: Callable[[], BilmOutput]
    ) -> BilmOutput:
        """`compute()`, or the last output if the batch, the weights and `mode` are the same."""
        # torch does not count changes of inference tensors.
        if torch.is_inference_mode_enabled() or words.is_inference():
            return compute()
        tensors = [words, *weights]
        if self._output is None or self._words() is not words or self._mode != mode or not self._state.is_of(tensors):
            self._words, self._mode, self._state = weakref.ref(words, self._forget), mode, WeightsState(tensors)
            self._output = compute()
            for layer in self._output.layers:
                if layer.requires_grad:
                    layer.register_hook(self._forget)
        return self._output

    def _forget(self, *_: Any) -> None:
        self._output, self._state = None, WeightsState()

    def __reduce__(self) -> tuple[type["SharedPass"], tuple[()]]:
        return SharedPass, ()
