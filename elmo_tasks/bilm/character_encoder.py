"""From the characters of a word to its context-insensitive vector."""

import math

import torch
from torch import nn

from elmo_tasks.bilm.characters import MAX_CHARACTERS_PER_TOKEN, N_CHARACTER_IDS, word_to_character_ids
from elmo_tasks.bilm.options import BilmOptions

__all__ = ["CharacterEncoder"]

_ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


class Highway(nn.Module):
    """
    One highway layer (Srivastava et al. 2015): `y = g * relu(W x + b) + (1 - g) * x` with `g = sigmoid(V x + c)`.

    # Parameters

    dim : `int`
        Units of the input and of the output.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dim, dim)
        self.carry = nn.Linear(dim, dim)

    def reset_parameters(self) -> None:
        """As bilm-tf: a carry bias of -2 lets a new layer pass its input through."""
        dim = self.transform.in_features
        for linear, bias in ((self.transform, 0.0), (self.carry, -2.0)):
            nn.init.normal_(linear.weight, std=math.sqrt(1 / dim))
            nn.init.constant_(linear.bias, bias)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Takes and returns a tensor of shape `(..., dim)`."""
        # Shape: (..., dim)
        gate = torch.sigmoid(self.carry(inputs))
        return torch.lerp(inputs, torch.relu(self.transform(inputs)), gate)


class CharacterEncoder(nn.Module):
    """
    The character CNN of the biLM with its highway layers and its projection (section 3.4 of the paper): filters of
    several widths over the embedded characters, the maximum of each filter over the word, highway layers, and a linear
    projection to the input of the LSTMs.

    # Parameters

    options : `BilmOptions`
        The biLM's shape.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        self._activation = _ACTIVATIONS[options.activation]
        self._widest = max(width for width, _ in options.filters)
        self.embedding = nn.Embedding(N_CHARACTER_IDS, options.character_dim, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(options.character_dim, number, width) for width, number in options.filters
        )
        self.highways = nn.ModuleList(Highway(options.n_filters) for _ in range(options.n_highway))
        self.projection = nn.Linear(options.n_filters, options.projection_dim)
        # What pads a word: the last id of the empty word.
        self._padding_id = int(word_to_character_ids("")[-1])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights with bilm-tf's scales."""
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0)
        with torch.no_grad():
            self.embedding.weight[0].zero_()
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            if self._activation is torch.relu:
                nn.init.uniform_(convolution.weight, -0.05, 0.05)
            else:
                nn.init.normal_(convolution.weight, std=math.sqrt(1 / convolution.weight[0].numel()))
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            assert isinstance(highway, Highway)
            highway.reset_parameters()
        nn.init.normal_(self.projection.weight, std=math.sqrt(1 / self.projection.in_features))
        nn.init.zeros_(self.projection.bias)

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        character_ids : `torch.Tensor`
            Shape `(..., 50)`, int64.

        # Returns

        `torch.Tensor`
            Shape `(..., projection_dim)`: a vector for each word. Equal words are computed once.

        # Raises

        `ValueError`
            If the last dimension is not 50.
        """
        if character_ids.size(-1) != MAX_CHARACTERS_PER_TOKEN:
            raise ValueError(
                f"character ids must have {MAX_CHARACTERS_PER_TOKEN} ids a word in their last dimension, "
                f"but have the shape {tuple(character_ids.shape)}"
            )
        # Shape: (n_words, 50)
        words = character_ids.reshape(-1, MAX_CHARACTERS_PER_TOKEN)
        # Shape: (n_distinct, 50) and (n_words,)
        distinct, positions = torch.unique(words, dim=0, return_inverse=True)
        # Shape: (n_distinct, projection_dim)
        vectors = self._encode(self._without_needless_padding(distinct))
        return vectors[positions].reshape(*character_ids.shape[:-1], vectors.size(-1))

    def _without_needless_padding(self, words: torch.Tensor) -> torch.Tensor:
        """
        Leaves out columns that are padding in every word. One window of padding and no character stays for the widest
        filter where there was one: any more of them repeat its value, and the maximum over them is the same.
        """
        # Shape: (50,)
        used = ((words != self._padding_id) & (words != 0)).any(0)
        longest = int(used.nonzero().max()) + 1 if used.any() else 0
        return words[:, : min(longest + self._widest, MAX_CHARACTERS_PER_TOKEN)]

    def _encode(self, words: torch.Tensor) -> torch.Tensor:
        """Shape `(n_words, n_columns)` to `(n_words, projection_dim)`."""
        # Shape: (n_words, character_dim, n_columns)
        characters = self.embedding(words).transpose(1, 2)
        # The activations are monotonic: after the maximum they cost a column instead of all of them.
        # Shape: (n_words, n_filters)
        hidden = self._activation(torch.cat([filters(characters).amax(-1) for filters in self.convolutions], -1))
        for highway in self.highways:
            hidden = highway(hidden)
        # Shape: (n_words, projection_dim)
        projected: torch.Tensor = self.projection(hidden)
        return projected
