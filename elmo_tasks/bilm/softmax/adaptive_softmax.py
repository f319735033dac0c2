"""An output layer that spends little on rare words."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

__all__ = ["AdaptiveSoftmax"]

# torch's own: each band of words has a quarter of the units of the one before.
_DIVISOR = 4
# How many rows of likelihoods are computed at once.
_ROWS_AT_ONCE = 1024


class AdaptiveSoftmax(nn.Module):
    """
    The softmax of Grave et al. 2017 in place of `LmSoftmax`: the vocabulary is cut into bands by frequency, and a rare
    word is predicted by way of its band, with fewer units. Its likelihoods are exact, but they are another model's: the
    public format has no place for it.

    # Parameters

    n_words : `int`
        The size of the vocabulary; words are numbered by frequency.
    dim : `int`
        Units of what predicts: the `projection_dim` of the biLM.
    cutoffs : `Sequence[int]`
        The number of the first word of each band but the first.

    # Raises

    `ValueError`
        If the cutoffs do not rise, lie outside the vocabulary, or are too many for `dim`.
    """

    def __init__(self, n_words: int, dim: int, *, cutoffs: Sequence[int]) -> None:
        super().__init__()
        edges = [0, *cutoffs, n_words]
        if not cutoffs or any(low >= high for low, high in pairwise(edges)):
            raise ValueError(
                f"cutoffs must be one or more rising numbers between 1 and {n_words - 1} (the vocabulary has {n_words} "
                f"words), but are {list(cutoffs)}"
            )
        if dim < _DIVISOR ** len(cutoffs):
            raise ValueError(
                f"dim must be at least {_DIVISOR} ** the number of cutoffs, so that the last band has a unit, but is "
                f"{dim} with {len(cutoffs)} cutoffs: leave some out"
            )
        self.n_words = n_words
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(dim, n_words, cutoffs=cutoffs, div_value=_DIVISOR, head_bias=True)

    def forward(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The summed negative log-likelihood, as `LmSoftmax.forward`."""
        return -self._log_likelihood(hidden, targets).sum()

    def log_likelihood(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The log-likelihood of each target without gradients, as `LmSoftmax.log_likelihood`."""
        with torch.no_grad(), torch.autocast(hidden.device.type, enabled=False):
            hidden = hidden.to(self.softmax.head.weight.dtype)
            chunks = zip(torch.split(hidden, _ROWS_AT_ONCE), torch.split(targets, _ROWS_AT_ONCE), strict=True)
            return torch.cat([self._log_likelihood(*chunk) for chunk in chunks])

    def _log_likelihood(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        # Shape: (n,). The mean loss that comes with it is of no use: means of batches cannot be added up.
        log_likelihood: torch.Tensor = self.softmax(hidden, targets).output
        return log_likelihood
