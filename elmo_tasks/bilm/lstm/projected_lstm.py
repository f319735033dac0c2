"""The parameters of the biLM's LSTM, which has a projected output and clipping."""

import torch
from torch import nn

from elmo_tasks.bilm.options import BilmOptions

__all__ = ["ProjectedLstm", "scaled_parameters"]


class ProjectedLstm(nn.Module):
    """
    One layer in one direction of the biLM: an LSTM that projects its output to fewer units, also for the next step (Sak
    et al. 2014; section 3.4 of the paper). `clip_p` clips the projection and `clip_c` the cell:

        i, g, f, o = x_t W_x + h_{t-1} W_h + b
        m_t = clip_c(sigmoid(f + 1) * m_{t-1} + sigmoid(i) * tanh(g))
        h_t = clip_p((sigmoid(o) * tanh(m_t)) P)

    Clipped values get no gradient. The parameters have the layout of the public weight files: `kernel` is `[W_x; W_h]`,
    the gates are ordered i, g, f, o, and the forget gate's 1 is added here, not stored in `bias`. This module holds the
    parameters; `BidirectionalLayer` runs the LSTM.
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
        """Draws new weights (Glorot and Bengio 2010, as TensorFlow does by default); the bias starts at 0."""
        nn.init.xavier_uniform_(self.kernel)
        nn.init.xavier_uniform_(self.projection)
        nn.init.zeros_(self.bias)


def scaled_parameters(
    kernel: torch.Tensor, bias: torch.Tensor, projection: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    The parameters of one LSTM or of several, stacked, for `LstmCell`: the gates in its order, i, f, g, o, with the
    candidates doubled, the forget gate's 1 in the bias, and a doubled projection for its halved outputs.
    """
    i, g, f, o = kernel.chunk(4, -1)
    kernel = torch.cat([i, f, 2.0 * g, o], -1)
    i, g, f, o = bias.chunk(4, -1)
    return kernel, torch.cat([i, f + 1.0, 2.0 * g, o], -1), 2.0 * projection
