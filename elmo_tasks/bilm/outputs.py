"""Outputs of the biLM."""

from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["BilmContexts", "BilmOutput"]


@dataclass(frozen=True)
class BilmOutput:
    """
    The layers of a biLM for a batch of sentences (section 3.1 of the paper), without the sentence boundaries.

    # Parameters

    layers
        `n_layers + 1` tensors of shape `(batch_size, timesteps, 2 * projection_dim)`, forward units before backward
        ones: first the context-insensitive layer (the character encoder's vector, twice), then the LSTMs from the
        lowest to the highest. Zero for padding.
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
    The output of a biLM at the positions from which it predicts a word: in the forward direction the next one, in the
    backward direction the previous one (section 3.1 of the paper). Every word of a sentence is predicted once in each
    direction, and so is the boundary at which the direction ends.

    # Parameters

    hidden
        Shape `(2, n_predictions, projection_dim)`: the highest LSTM's output, forward and backward.
    targets
        Shape `(2, n_predictions)`: the word to predict. Words are numbered row by row through the batch, without
        padding; the begin and the end of a sentence have the two numbers after the last word.
    rows
        Shape `(n_predictions,)`: the index of the sentence in the batch, for both directions.
    """

    hidden: torch.Tensor
    targets: torch.Tensor
    rows: torch.Tensor
