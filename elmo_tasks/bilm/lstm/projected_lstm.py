"""The parameters of the biLM's LSTM, which has a projected output and clipping."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from elmo_tasks.bilm.options import BilmOptions

__all__ = ["ProjectedLstm", "ScaledParameters", "scaled_parameters"]


class ProjectedLstm(nn.Module):
    """
    One layer in one direction of the biLM: an LSTM that projects its output to fewer units, also
    for the next step (Sak et al. 2014; section 3.4 of the paper). `clip_p` clips the projection and
    `clip_c` the cell:

        i, g, f, o = x_t W_x + h_{t-1} W_h + b
        m_t = clip_c(sigmoid(f + 1) * m_{t-1} + sigmoid(i) * tanh(g))
        h_t = clip_p((sigmoid(o) * tanh(m_t)) P)

    Clipped values get no gradient. The parameters have the layout of the public weight files:
    `kernel` is `[W_x; W_h]`, the gates are ordered i, g, f, o, and the forget gate's 1 is added
    here, not stored in `bias`. This module holds the parameters; `BidirectionalLayer` runs the
    LSTM.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        dim, cell_dim = options.projection_dim, options.cell_dim
        self.cell_clip = options.cell_clip
        self.projection_clip = options.projection_clip
        self.kernel = nn.Parameter(torch.empty(2 * dim, 4 * cell_dim))
        self.bias = nn.Parameter(torch.empty(4 * cell_dim))
        self.projection = nn.Parameter(torch.empty(cell_dim, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """
        Draws new weights (Glorot and Bengio 2010, as TensorFlow does by default); the bias starts
        at 0.
        """
        nn.init.xavier_uniform_(self.kernel)
        nn.init.xavier_uniform_(self.projection)
        nn.init.zeros_(self.bias)


class ScaledParameters(NamedTuple):
    """
    The parameters of LSTMs, stacked, for `LstmCell`: the gates in its order, i, f, g, o, with the
    candidates doubled, the forget gate's 1 in the bias, and a doubled projection for its halved
    outputs.
    """

    kernel: torch.Tensor
    """Shape `(n_lstms, 2 * projection_dim, 4 * cell_dim)`."""
    bias: torch.Tensor
    """Shape `(n_lstms, 4 * cell_dim)`."""
    projection: torch.Tensor
    """Shape `(n_lstms, cell_dim, projection_dim)`."""


def scaled_parameters(lstms: Sequence[ProjectedLstm]) -> ScaledParameters:
    """The parameters of LSTMs of the same shape, with gradients."""
    i, g, f, o = torch.stack([lstm.kernel for lstm in lstms]).chunk(4, -1)
    kernel = torch.cat([i, f, 2.0 * g, o], -1)
    i, g, f, o = torch.stack([lstm.bias for lstm in lstms]).chunk(4, -1)
    bias = torch.cat([i, f + 1.0, 2.0 * g, o], -1)
    projection = torch.stack([lstm.projection for lstm in lstms])
    return ScaledParameters(kernel, bias, 2.0 * projection)
