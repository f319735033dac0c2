"""The LSTM of the biLM: a projected output, both memory and output clipped."""

from collections.abc import Sequence

import torch
from torch import nn

__all__ = ["LstmState", "ProjectedLstm"]

LstmState = tuple[torch.Tensor, torch.Tensor]
"""Output of shape `(batch_size, projection_dim)` and memory of shape `(batch_size, cell_dim)`."""


class ProjectedLstm(nn.Module):
    """
    One layer of one direction of the biLM: an LSTM whose output is projected to fewer units before it is used, by the
    next step too (Sak et al. 2014; section 3.4 of the paper). With `p` the clip of the projection and `c` of the cell:

        i, g, f, o = x_t W_x + h_{t-1} W_h + b
        m_t = clip_c(sigmoid(f + 1) * m_{t-1} + sigmoid(i) * tanh(g))
        h_t = clip_p((sigmoid(o) * tanh(m_t)) P)

    The parameters lie as in the public weight files: `kernel` is `[W_x; W_h]`, the gates are ordered i, g, f, o, and
    the 1 of the forget gate is added here, not stored in `bias`.

    # Parameters

    input_dim, cell_dim, projection_dim : `int`
        Units of the input, of the memory and of the output.
    cell_clip, projection_clip : `float`, optional (default = `None`)
        Memory and output are kept between plus and minus this. `None`: no clipping.
    go_forward : `bool`, optional (default = `True`)
        Whether sentences are read from their beginning.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        cell_dim: int,
        projection_dim: int,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        go_forward: bool = True,
    ) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.cell_dim = cell_dim
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.go_forward = go_forward
        self.kernel = nn.Parameter(torch.empty(input_dim + projection_dim, 4 * cell_dim))
        self.bias = nn.Parameter(torch.empty(4 * cell_dim))
        self.projection = nn.Parameter(torch.empty(cell_dim, projection_dim))
        forget_bias = torch.zeros(4, cell_dim)
        forget_bias[2] = 1.0
        self.register_buffer("forget_bias", forget_bias.flatten(), persistent=False)
        self.forget_bias: torch.Tensor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights (Glorot and Bengio 2010, as TensorFlow does by default); the bias starts at 0."""
        nn.init.xavier_uniform_(self.kernel)
        nn.init.xavier_uniform_(self.projection)
        nn.init.zeros_(self.bias)

    def forward(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], initial: LstmState
    ) -> tuple[torch.Tensor, LstmState]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(n_words, input_dim)`: the words of all sentences as `torch.nn.utils.rnn.PackedSequence` lays them
            out, that is step by step, and within a step from the longest sentence to the shortest.
        batch_sizes : `Sequence[int]`
            How many sentences have a word at each step; never increasing.
        initial : `LstmState`
            The state before the first word of each sentence, `batch_sizes[0]` rows.

        # Returns

        `Tuple[torch.Tensor, LstmState]`
            The outputs, of shape `(n_words, projection_dim)`, laid out as `inputs`; and the state after the last word
            of each sentence.
        """
        # The input side does not wait for the recurrence: one product for all words.
        # Shape: (n_words, 4 * cell_dim)
        input_side = torch.addmm(self.bias + self.forget_bias, inputs, self.kernel[: self.input_dim])
        input_sides = torch.split(input_side, list(batch_sizes))
        # Shape: (projection_dim, 4 * cell_dim)
        recurrent_kernel = self.kernel[self.input_dim :]

        steps = range(len(batch_sizes)) if self.go_forward else range(len(batch_sizes) - 1, -1, -1)
        outputs: list[torch.Tensor] = [inputs] * len(batch_sizes)
        finished: list[LstmState] = []
        # Only the rows of the sentences under way; read backward, short sentences join later.
        output, memory = (state[: batch_sizes[steps[0]]] for state in initial)
        for step in steps:
            n_now, n_before = batch_sizes[step], output.size(0)
            if n_now < n_before:
                finished.append((output[n_now:], memory[n_now:]))
                output, memory = output[:n_now], memory[:n_now]
            elif n_now > n_before:
                output = torch.cat([output, initial[0][n_before:n_now]])
                memory = torch.cat([memory, initial[1][n_before:n_now]])
            # Shape: (n_now, 4 * cell_dim)
            gates = torch.addmm(input_sides[step], output, recurrent_kernel)
            output, memory = self._cell(gates, memory)
            outputs[step] = output
        # The sentences that ended last are the longest, the first rows.
        finished.append((output, memory))
        last_output, last_memory = (torch.cat(states) for states in zip(*reversed(finished), strict=True))
        return torch.cat(outputs), (last_output, last_memory)

    def _cell(self, gates: torch.Tensor, memory: torch.Tensor) -> LstmState:
        # Shape: (batch_size, cell_dim), each
        input_gate, candidate, forget_gate, output_gate = gates.chunk(4, -1)
        memory = torch.sigmoid(forget_gate) * memory + torch.sigmoid(input_gate) * torch.tanh(candidate)
        if self.cell_clip is not None:
            memory = memory.clamp(-self.cell_clip, self.cell_clip)
        # Shape: (batch_size, projection_dim)
        output = (torch.sigmoid(output_gate) * torch.tanh(memory)) @ self.projection
        if self.projection_clip is not None:
            output = output.clamp(-self.projection_clip, self.projection_clip)
        return output, memory
