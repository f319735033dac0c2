"""
ELMo, plainly: the network of *Deep contextualized word representations* (Peters et al. 2018), to be
read from top to bottom. Section numbers are the paper's. It computes one sentence at a time, with
torch's ordinary operators, in float32 or float64. `Bilm` is the same network, made fast: its
parameters have the same names, and tests compare its layers, its gradients and its steps of
training with this one.
"""

import math
from collections.abc import Sequence
from os import PathLike

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from elmo_tasks.bilm.character_ids import BYTES, N_CHARACTER_IDS
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.weights import read_weights

__all__ = ["CharacterCnn", "Highway", "Lstm", "PlainBilm", "log_likelihood", "scalar_mix"]

# The output and the memory of an LSTM after a word. Shape: (projection_dim,) and (cell_dim,)
State = tuple[torch.Tensor, torch.Tensor]


class Highway(nn.Module):
    """A layer that mixes its input with a function of it (Srivastava et al. 2015)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform, self.carry = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape `(n_words, dim)` to the same shape."""
        gate = torch.sigmoid(self.carry(x))
        return gate * torch.relu(self.transform(x)) + (1 - gate) * x


class CharacterCnn(nn.Module):
    """
    Section 3.4: a word's vector from its characters only, so no word is unknown. A word is 50 ids:
    its UTF-8 bytes between a begin and an end marker, then padding (`character_ids.py`).
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        dim = options.character_dim
        self.embedding = nn.Embedding(N_CHARACTER_IDS, dim, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(dim, n_filters_of_width, width)
            for width, n_filters_of_width in options.filters
        )
        self.activation = {"relu": torch.relu, "tanh": torch.tanh}[options.activation]
        self.highways = nn.ModuleList(Highway(options.n_filters) for _ in range(options.n_highway))
        self.projection = nn.Linear(options.n_filters, options.projection_dim)

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """Shape `(n_words, 50)` to `(n_words, projection_dim)`."""
        # Shape: (n_words, character_dim, 50)
        characters = self.embedding(character_ids).transpose(1, 2)
        # The largest response of each filter at any position in the word. Shape: (n_words,
        # n_filters)
        x = torch.cat([convolution(characters).amax(-1) for convolution in self.convolutions], -1)
        x = self.activation(x)
        for highway in self.highways:
            x = highway(x)
        return self.projection(x)  # type: ignore[no-any-return]


class Lstm(nn.Module):
    """
    Section 3.4: one layer in one direction. The output of `cell_dim` units is projected to
    `projection_dim`, which is also what the next step reads (Sak et al. 2014). The clips and the
    forget gate's 1 come from bilm-tf.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        dim, cell_dim = options.projection_dim, options.cell_dim
        self.cell_clip = math.inf if options.cell_clip is None else options.cell_clip
        self.projection_clip = (
            math.inf if options.projection_clip is None else options.projection_clip
        )
        self.kernel = nn.Parameter(torch.zeros(2 * dim, 4 * cell_dim))
        self.bias = nn.Parameter(torch.zeros(4 * cell_dim))
        self.projection = nn.Parameter(torch.zeros(cell_dim, dim))

    def forward(
        self, words: torch.Tensor, state: State | None = None
    ) -> tuple[torch.Tensor, State]:
        """
        Shape `(n_words, projection_dim)` to the same shape, and the state after the last word.
        """
        cell_dim, dim = self.projection.shape
        output, memory = state or (words.new_zeros(dim), words.new_zeros(cell_dim))
        outputs = []
        for word in words:
            # The input gate, the candidate, the forget gate and the output gate. Shape:
            # (cell_dim,), each
            i, g, f, o = (torch.cat([word, output]) @ self.kernel + self.bias).chunk(4)
            memory = torch.sigmoid(f + 1) * memory + torch.sigmoid(i) * torch.tanh(g)
            memory = memory.clamp(-self.cell_clip, self.cell_clip)
            # Shape: (projection_dim,)
            output = (torch.sigmoid(o) * torch.tanh(memory)) @ self.projection
            output = output.clamp(-self.projection_clip, self.projection_clip)
            outputs.append(output)
        return torch.stack(outputs), (output, memory)


class PlainBilm(nn.Module):
    """
    Section 3.1: the bidirectional language model. Its directions share only the vectors of the
    words.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        self.residual = options.residual
        self.character_encoder = CharacterCnn(options)
        self.forward_layers = nn.ModuleList(Lstm(options) for _ in range(options.n_layers))
        self.backward_layers = nn.ModuleList(Lstm(options) for _ in range(options.n_layers))

    @classmethod
    def from_files(
        cls, options_file: str | PathLike[str], weight_file: str | PathLike[str]
    ) -> "PlainBilm":
        """Reads the public format: `options.json`, and an HDF5 or safetensors file."""
        bilm = cls(options := BilmOptions.from_file(options_file))
        bilm.load_state_dict(read_weights(weight_file, options))
        return bilm

    def forward(
        self, words: Sequence[str], states: dict[nn.Module, State] | None = None
    ) -> torch.Tensor:
        """
        The layers of a sentence between its begin and its end, which are words too: shape
        `(n_layers + 1, n_words + 2, 2 * projection_dim)`, first the character CNN's. LSTMs start in
        their `states`, by default at zero, and update them: bilm-tf starts in those after the
        sentence before.
        """
        states = {} if states is None else states
        # Shape: (n_words + 2, projection_dim)
        vectors = self.character_encoder(BYTES.batch([["<S>", *words, "</S>"]])[0])
        directions = []
        for lstms, inputs in (
            (self.forward_layers, vectors),
            (self.backward_layers, vectors.flip(0)),
        ):
            layers = [inputs]
            for j, lstm in enumerate(lstms):
                output, states[lstm] = lstm(layers[-1], states.get(lstm))
                # Section 3.4: a residual connection from the first LSTM to the second.
                layers.append(output + layers[-1] if self.residual and j > 0 else output)
            directions.append(torch.stack(layers))
        return torch.cat([directions[0], directions[1].flip(1)], -1)


def log_likelihood(
    top: torch.Tensor, numbers: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """
    Section 3.1: what the biLM is trained for, given the highest layer of a sentence, the numbers of
    its words in a softmax, shape `(n_words + 2,)`, and the softmax, which the directions share.
    Forward and backward, shape `(2,)`.
    """
    ahead, back = top.chunk(2, -1)
    # Forward predicts the next word, backward the word before.
    pairs = (ahead[:-1], numbers[1:]), (back[1:], numbers[:-1])
    return torch.stack(
        [-cross_entropy(linear(h, weight, bias), word, reduction="sum") for h, word in pairs]
    )


def scalar_mix(
    layers: torch.Tensor, weights: torch.Tensor, gamma: torch.Tensor | float = 1.0
) -> torch.Tensor:
    """
    Section 3.2, Eq. (1): `gamma * sum_j s_j h_j` with `s = softmax(w)`. A task trains `gamma` and
    one `w_j` per layer. Shape `(n_layers + 1, ..., dim)` to `(..., dim)`.
    """
    return gamma * torch.einsum("j,j...->...", weights.softmax(0), layers)
