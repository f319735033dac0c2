"""Selection from the layers of a biLM: their mix or some of them, for each word or for the sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from elmo_tasks.bilm.outputs import BilmOutput
from elmo_tasks.vectors.pooling import POOLS, Pool, pooled

__all__ = ["LayerSelection", "Layers"]

Layers = Literal["mix", "all", "top"] | int


@dataclass(frozen=True, kw_only=True)
class LayerSelection:
    """
    Vectors from the layers of a batch.

    # Parameters

    n_layers
        Layers of the biLM, the context-insensitive one among them.
    layers
        `"mix"` is Eq. (1) of the paper, `gamma * sum_j s_j h_j` with `s = softmax(weights)`; `"all"` keeps the layers
        apart; `"top"` is the highest, and a number that layer (0 is the context-insensitive one).
    weights
        For `"mix"` only, a number for each layer before the softmax. `None`: the plain average of the layers.
    gamma
        Scales the vectors, whatever `layers` is.
    pool
        One vector for the sentence: see `pooled`. `None`: a vector for each word.

    # Raises

    `ValueError`
        If an argument has another value.
    """

    n_layers: int
    layers: Layers = "mix"
    weights: Sequence[float] | None = None
    gamma: float = 1.0
    pool: Pool | None = None

    def __post_init__(self) -> None:
        is_index = isinstance(self.layers, int | np.integer) and not isinstance(self.layers, bool)
        is_name = isinstance(self.layers, str) and self.layers in ("mix", "all", "top")
        if not is_name and not (is_index and 0 <= int(self.layers) < self.n_layers):
            raise ValueError(
                f"layers must be 'mix', 'all', 'top' or a number from 0 (context-insensitive) to {self.n_layers - 1}, "
                f"but is {self.layers!r}"
            )
        if self.pool is not None and self.pool not in POOLS:
            raise ValueError(f"pool must be one of {', '.join(map(repr, POOLS))}, or None, but is {self.pool!r}")
        if not _are_finite(self.gamma, ()):
            raise ValueError(f"gamma must be a finite number, but is {self.gamma!r}")
        if self.weights is None:
            return
        if self.layers != "mix":
            raise ValueError(f"weights are for layers='mix', but layers is {self.layers!r}: omit the weights")
        if not _are_finite(self.weights, (self.n_layers,)):
            raise ValueError(
                f"weights must be {self.n_layers} finite numbers, one for each layer from the context-insensitive one "
                f"to the highest, but are {self.weights!r}"
            )

    def __call__(self, output: BilmOutput) -> torch.Tensor:
        """
        # Parameters

        output
            The layers, each of shape `(batch_size, timesteps, dim)`, and the mask.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, timesteps, dim)`, without the timesteps if there is a `pool`, and with the layers,
            `(batch_size, n_layers, ...)`, if `layers` is `"all"`.
        """
        vectors = self._chosen(output.layers)
        gamma = np.asarray(_plain(self.gamma)).item()
        if gamma != 1.0:
            # Before words are pooled: the largest of numbers is another one if their signs change.
            vectors = gamma * vectors
        if self.pool is None:
            return vectors
        # Shape: (batch_size, timesteps), with a dimension for the layers where the vectors have one.
        mask = output.mask if vectors.dim() == 3 else output.mask[:, None]
        return pooled(vectors, mask, self.pool)

    def _chosen(self, layers: Sequence[torch.Tensor]) -> torch.Tensor:
        if self.layers == "all":
            # Shape: (batch_size, n_layers, timesteps, dim)
            return torch.stack(list(layers), 1)
        if self.layers != "mix":
            return layers[-1 if self.layers == "top" else int(self.layers)]
        # Shape: (n_layers,)
        weights = [0.0] * self.n_layers if self.weights is None else _plain(self.weights)
        numbers = torch.as_tensor(weights, dtype=torch.float64)
        shares = numbers.softmax(0).tolist()
        # Shape: (batch_size, timesteps, dim)
        mixed: torch.Tensor = shares[0] * layers[0]
        for share, layer in zip(shares[1:], layers[1:], strict=True):
            mixed = torch.add(mixed, layer, alpha=share)
        return mixed


def _are_finite(numbers: object, shape: tuple[int, ...]) -> bool:
    try:
        array = np.asarray(_plain(numbers))
    except (TypeError, ValueError, RuntimeError):
        return False
    return array.dtype.kind in "iuf" and array.shape == shape and bool(np.isfinite(array).all())


def _plain(numbers: Any) -> Any:
    """Without the gradients that the weights of a trained mix have."""
    if isinstance(numbers, torch.Tensor):
        # AllenNLP's parameters have one element.
        return numbers.detach().cpu().double().squeeze()
    if isinstance(numbers, list | tuple | torch.nn.ParameterList):
        return [_plain(number) for number in numbers]
    return numbers
