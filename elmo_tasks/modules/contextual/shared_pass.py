"""One pass of a model for all who ask for the same batch."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from elmo_tasks.bilm import BilmOutput
from elmo_tasks.bilm.lstm.frozen import WeightsState, n_changes

__all__ = ["SharedPass"]

# A model looks at two at a time, as premise and hypothesis.
_MOST_BATCHES = 4


class SharedPass:
    """
    The layers of the last few batches, each computed once. A batch is known by its tensor, and when it goes, so do its
    layers; they are computed again if batch or weights were changed.

    Layers with gradients are kept until the first gradient arrives at one of them: what computed them is freed then.
    Layers without are forgotten when layers with gradients are computed, that is when the weights are trained: some
    optimizers change weights in ways that `WeightsState` does not see.

    They belong to this object: a copy, pickled or not, starts without any.
    """

    def __init__(self) -> None:
        self._passes: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
        self._weights = WeightsState()

    def output(
        self, words: torch.Tensor, weights: Sequence[torch.Tensor], mode: Any, compute: Callable[[], BilmOutput]
    ) -> BilmOutput:
        """
        # Parameters

        words
            The batch.
        weights
            Those of the model, in an order that stays.
        mode
            What else the layers depend on, as whether the model is in training; compared for equality.
        compute
            Computes the layers.
        """
        if not self._weights.is_of(weights):
            self._passes = WeakTensorKeyDictionary()
            self._weights = WeightsState(weights)
        state = n_changes(words), mode
        known, output = self._passes.get(words, (None, None))
        # What was computed in inference mode has no use where there are gradients.
        is_useless = output is not None and output.layers[0].is_inference() and not torch.is_inference_mode_enabled()
        if output is None or known != state or is_useless:
            output = compute()
            if _has_gradients(output):
                for batch, (_, other) in list(self._passes.items()):
                    if not _has_gradients(other):
                        del self._passes[batch]
            self._passes[words] = (state, output)
            # Where gradients are accumulated, the trainer keeps batches that nobody asks for any more.
            while len(self._passes) > _MOST_BATCHES:
                del self._passes[next(iter(self._passes.keys()))]
            self._forget_with_gradients(words, output)
        return output

    def _forget_with_gradients(self, words: torch.Tensor, output: BilmOutput) -> None:
        # The layers hold these functions, and must not hold the batch that holds the layers.
        key, passes = weakref.ref(words), weakref.ref(self._passes)

        def forget(gradient: torch.Tensor) -> None:
            batch, known = key(), passes()
            if batch is not None and known is not None:
                known.pop(batch, None)

        for layer in output.layers:
            if layer.requires_grad:
                layer.register_hook(forget)

    def __reduce__(self) -> tuple[type["SharedPass"], tuple[()]]:
        return SharedPass, ()


def _has_gradients(output: BilmOutput) -> bool:
    return any(layer.requires_grad for layer in output.layers)
