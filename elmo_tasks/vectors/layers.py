"""Mix or selection of the layers of a biLM, per word or pooled per sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

from elmo_tasks.bilm.outputs import BilmOutput, mix_layers, softmax_weights

__all__ = ["LayerSelection", "Layers", "Pool", "pooled", "pooled_words"]

Layers = Literal["mix", "all", "top"] | int
Pool = Literal["mean", "max", "first-last"]


@dataclass(frozen=True, kw_only=True)
class LayerSelection:
    """
    Vectors from the `n_layers` layers of a batch. For the other arguments, see `Elmo.embed_iter`.
    """

    n_layers: int
    layers: Layers = "mix"
    weights: Sequence[float] | torch.Tensor | None = None
    gamma: float = 1.0
    pool: Pool | None = None

    def __post_init__(self) -> None:
        if self.layers not in ("mix", "all", "top", *range(self.n_layers)):
            expected = f"layers 'mix', 'all', 'top' or 0 to {self.n_layers - 1}"
            raise ValueError(f"expected {expected}, got {self.layers!r}")
        pools = get_args(Pool)
        if self.pool is not None and self.pool not in pools:
            raise ValueError(f"expected one of {', '.join(pools)} for pool, got {self.pool!r}")
        factors = [float(self.gamma)]
        if self.weights is not None:
            if self.layers != "mix" or len(self.weights) != self.n_layers:
                given = f"{len(self.weights)} with layers={self.layers!r}"
                raise ValueError(f"expected {self.n_layers} weights with layers='mix', got {given}")
            factors += map(float, self.weights)
        if not np.isfinite(factors).all():
            raise ValueError(f"expected finite numbers for gamma and weights, got {factors}")

    def __call__(self, output: BilmOutput) -> torch.Tensor:
        """
        Vectors of shape `(batch_size, timesteps, dim)`. A `pool` removes the dimension `timesteps`,
        and `layers="all"` adds one for the layers: `(batch_size, n_layers, ...)`.
        """
        vectors = self._chosen(output.layers)
        if self.gamma != 1.0:
            # Before pooling, because a negative factor changes which number is the largest.
            vectors = float(self.gamma) * vectors
        if self.pool is None:
            return vectors
        # Shape: (batch_size, timesteps)
        mask = output.mask
        if self.layers == "all":
            # Shape: (batch_size, 1, timesteps)
            mask = mask[:, None]
        return pooled(vectors, mask, self.pool)

    def _chosen(self, layers: Sequence[torch.Tensor]) -> torch.Tensor:
        if self.layers == "all":
            # Shape: (batch_size, n_layers, timesteps, dim)
            return torch.stack(list(layers), 1)
        if self.layers == "top":
            return layers[-1]
        if self.layers != "mix":
            return layers[int(self.layers)]
        if self.weights is None:
            weights = softmax_weights([0.0] * self.n_layers)
        else:
            weights = softmax_weights(self.weights)
        return mix_layers(layers, weights)


def pooled(vectors: torch.Tensor, mask: torch.Tensor, pool: Pool) -> torch.Tensor:
    """
    One vector for many words, of shape `(..., dim)`; zeros if there are no words.

    # Parameters

    vectors
        Shape `(..., timesteps, dim)`, forward units before backward ones, zero where there is no
        word.
    mask
        Boolean, shape `(..., timesteps)`, true where there is a word. All words are before the
        padding.
    pool
        `"mean"` of the words; `"max"`, the greatest value of each unit; or `"first-last"`, the
        forward units of the last word and the backward units of the first, which have each read the
        whole sentence.
    """
    # Shape: (..., 1)
    lengths = mask.sum(-1, keepdim=True)
    if pool == "mean" or not vectors.size(-2):
        return vectors.sum(-2) / lengths.clamp(min=1)
    if pool == "max":
        highest = vectors.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(-2)
        return highest.masked_fill(lengths == 0, 0.0)
    n_forward = vectors.size(-1) // 2
    # Shape: (..., 1, 1)
    last_index = (lengths - 1).clamp(min=0).unsqueeze(-1)
    # Shape: (..., dim)
    last = vectors.take_along_dim(last_index, -2).squeeze(-2)
    return torch.cat([last[..., :n_forward], vectors[..., 0, n_forward:]], -1)


def pooled_words(vectors: np.ndarray, pool: Pool) -> np.ndarray:
    """Like `pooled`, for an array of shape `(..., n_words, dim)` without padding."""
    mask = torch.ones(vectors.shape[:-1], dtype=torch.bool)
    array: np.ndarray = pooled(torch.from_numpy(vectors), mask, pool).numpy()
    return array
