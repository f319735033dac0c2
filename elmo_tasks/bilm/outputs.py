"""Outputs of the biLM, and the mix of its layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from elmo_tasks.bilm.packing import PackedSentences

__all__ = ["BilmContexts", "BilmOutput", "mix_layers", "softmax_weights"]


@dataclass(frozen=True)
class BilmOutput:
    """
    The layers of a biLM for a batch of sentences (section 3.1 of the paper), without the sentence
    boundaries.

    # Parameters

    layers
        `n_layers + 1` tensors of shape `(batch_size, timesteps, 2 * projection_dim)`, forward units
        before backward ones: first the context-insensitive layer (the character encoder's vector,
        twice), then the LSTMs from the lowest to the highest. Zero for padding.
    mask
        Shape `(batch_size, timesteps)`: true for words, false for padding.
    """

    layers: tuple[torch.Tensor, ...]
    mask: torch.Tensor

    def to_json(self) -> dict[str, Any]:
        """The tensors as lists, for AllenNLP's `Predictor.capture_model_internals`."""
        return {"layers": [layer.tolist() for layer in self.layers], "mask": self.mask.tolist()}


@dataclass(frozen=True)
class BilmContexts:
    """
    The output of a biLM where it predicts a word: the next one forward, the previous one backward
    (section 3.1 of the paper). Each direction predicts every word of a sentence once, and the
    boundary at its end.

    # Parameters

    hidden
        Shape `(2, n_predictions, projection_dim)`: the highest LSTM's output, forward and backward.
    targets
        Shape `(2, n_predictions)`: the word to predict, numbered as in `PackedSentences`.
    rows
        Shape `(n_predictions,)`: the index of the sentence in the batch, for both directions.
    layers, sentences
        All layers, as in `BilmOutput`, but packed: each of shape
        `(2, n_packed_words, projection_dim)`.
    """

    hidden: torch.Tensor
    targets: torch.Tensor
    rows: torch.Tensor
    layers: tuple[torch.Tensor, ...]
    sentences: PackedSentences


def mix_layers(
    layers: Sequence[torch.Tensor], weights: torch.Tensor | Sequence[float]
) -> torch.Tensor:
    """
    `sum_j s_j h_j`, Eq. (1) of the paper. The weights, a tensor with gradients or numbers, may
    include gamma.
    """
    total: torch.Tensor = weights[0] * layers[0]
    for weight, layer in zip(weights[1:], layers[1:], strict=True):
        if isinstance(weight, torch.Tensor):
            total = torch.addcmul(total, weight, layer)
        else:
            # One rounding instead of two.
            total = torch.add(total, layer, alpha=weight)
    return total


def softmax_weights(weights: Sequence[float] | torch.Tensor) -> list[float]:
    """`s = softmax(w)`, without gradients."""
    # The weights of a trained mix may be separate tensors, as in AllenNLP.
    numbers = [weight.item() if isinstance(weight, torch.Tensor) else weight for weight in weights]
    return torch.tensor(numbers, dtype=torch.float64).softmax(0).tolist()
