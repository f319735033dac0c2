"""The biLM's LSTM, with a projected output and clipping, and the states that are carried between batches."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.functional import pad

from elmo_tasks.bilm.options import BilmOptions

__all__ = ["CarriedStates", "ProjectedLstm", "scaled_parameters"]


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


class CarriedStates:
    """Outputs and memories of LSTMs after a batch, with a row for each row of the largest batch so far."""

    def __init__(self) -> None:
        self._states: Sequence[torch.Tensor] | None = None

    def of_rows(self, rows: torch.Tensor, zero: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """
        The states of all rows of a batch, in the order of `rows`; new rows start at zero. The zero states, each of
        shape `(n_lstms, n_rows, dim)`, determine the types and the device.
        """
        pairs = zip(self._states or zero, zero, strict=True)
        self._states = [pad(old.to(new), (0, 0, 0, max(0, len(rows) - old.size(1)))) for old, new in pairs]
        return [state[:, rows] for state in self._states]

    def keep(self, rows: torch.Tensor, states: Sequence[torch.Tensor]) -> None:
        """Replaces the states of these rows, without gradients."""
        pairs = zip(self._states or (), states, strict=True)
        self._states = [old.index_copy(1, rows, new.detach().to(old)) for old, new in pairs]
