"""Eq. (1) of the paper: one vector per word from all layers of the biLM."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from elmo_tasks.bilm.outputs import mix_layers

__all__ = ["LayerMix"]


class LayerMix(nn.Module):
    """
    The paper's scalar mix, Eq. (1): `gamma * sum_j s_j h_j` with `s = softmax(w)`. Initially, `w`
    is 0 and `gamma` is 1, which gives the plain average of the layers.

    The L2 penalty of section 3.3, `lambda * sum_j w_j^2`, is a regularizer of the model for the
    regex `layer_weights$`.

    # Parameters

    layers : `Union[Literal["mix", "top"], int]`
        `"mix"` mixes all layers, `"top"` uses only the highest layer, and a number only that layer
        (0 is the context-insensitive one). A single layer is still scaled by `gamma`.
    layer_norm : `Literal["token", "batch"]`, optional
        How each layer is normalised before the mix (section 3.2 of the paper). `"token"`: each
        word's vector has mean 0 and variance 1. `"batch"`: one mean and one variance over all
        vectors of the batch, as in bilm-tf and AllenNLP.
    """

    def __init__(
        self,
        n_layers: int,
        *,
        layers: Literal["mix", "top"] | int = "mix",
        layer_norm: Literal["token", "batch"] | None = None,
    ) -> None:
        super().__init__()
        self.n_layers = n_layers
        self.layer_norm = layer_norm
        numbers = range(n_layers)
        if layers == "mix":
            self.indices = list(numbers)
        elif layers == "top":
            self.indices = [numbers[-1]]
        else:
            self.indices = [numbers[layers]]
        self.gamma = nn.Parameter(torch.ones(()))
        self.layer_weights: nn.Parameter | None = None
        if len(self.indices) > 1:
            self.layer_weights = nn.Parameter(torch.zeros(len(self.indices)))

    def forward(self, layers: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """
        From `n_layers` tensors of shape `(batch_size, timesteps, dim)` and the mask of the words to
        the same shape, zero where there is no word.
        """
        normalized = [self._normalized(layers[index], mask) for index in self.indices]
        if self.layer_weights is None:
            return self.gamma * normalized[0]
        return mix_layers(normalized, self.gamma * self.layer_weights.softmax(0))

    def _normalized(self, layer: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.layer_norm is None:
            return layer
        if self.layer_norm == "token":
            # Padding is zero and stays zero.
            return nn.functional.layer_norm(layer, layer.shape[-1:])
        # Over all elements of shape (n_words, dim).
        variance, mean = torch.var_mean(layer[mask], correction=0)
        normalized = (layer - mean) / torch.sqrt(variance + torch.finfo(layer.dtype).tiny)
        # Not a product, because the mean is NaN in a batch without words.
        return normalized.masked_fill(~mask.unsqueeze(-1), 0.0)
