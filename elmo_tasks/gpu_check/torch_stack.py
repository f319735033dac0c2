"""A biLM of torch's own modules, as one would write it without this package; to compare speeds with."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.characters import N_CHARACTER_IDS

__all__ = ["TorchStack"]


class TorchStack(nn.Module):
    """
    Character CNN, highway layers and `torch.nn.LSTM` with a projection, for each direction and layer; without clipping,
    which torch's LSTM has not, and with every word of a batch encoded by itself.

    # Parameters

    options
        The shape.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        dim = options.projection_dim
        self.embedding = nn.Embedding(N_CHARACTER_IDS, options.character_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(options.character_dim, number, width) for width, number in options.filters
        )
        self.highways = nn.ModuleList(
            nn.Linear(options.n_filters, 2 * options.n_filters) for _ in range(options.n_highway)
        )
        self.projection = nn.Linear(options.n_filters, dim)
        self.lstms = nn.ModuleList(
            nn.ModuleList(nn.LSTM(dim, options.cell_dim, proj_size=dim, batch_first=True) for _ in range(2))
            for _ in range(options.n_layers)
        )

    def forward(self, character_ids: torch.Tensor, lengths: torch.Tensor) -> list[torch.Tensor]:
        """
        # Parameters

        character_ids
            Shape `(batch_size, timesteps, 50)`: of words, without boundaries.
        lengths
            Shape `(batch_size,)`, on the CPU; none is 0.

        # Returns

        `List[torch.Tensor]`
            Each layer, of shape `(batch_size, timesteps, 2 * projection_dim)`.
        """
        batch_size, timesteps, _ = character_ids.shape
        # Shape: (batch_size * timesteps, character_dim, 50)
        embedded = self.embedding(character_ids.flatten(0, 1)).transpose(1, 2)
        # Shape: (batch_size * timesteps, n_filters)
        hidden = torch.cat([convolution(embedded).amax(-1).relu() for convolution in self.convolutions], -1)
        for highway in self.highways:
            transform, carry = highway(hidden).chunk(2, -1)
            hidden = torch.lerp(hidden, transform.relu(), carry.sigmoid())
        # Shape: (batch_size, timesteps, projection_dim)
        words = self.projection(hidden).view(batch_size, timesteps, -1)
        # Where each word stands if its sentence is read from the end.
        # Shape: (batch_size, timesteps)
        steps = torch.arange(timesteps, device=words.device)
        backward = (lengths.to(words.device)[:, None] - 1 - steps).clamp(min=0)
        currents = [words, _in_order(words, backward)]
        layers = [torch.cat([words, words], -1)]
        for index, pair in enumerate(self.lstms):
            assert isinstance(pair, nn.ModuleList)
            for direction, lstm in enumerate(pair):
                packed = pack_padded_sequence(currents[direction], lengths, batch_first=True, enforce_sorted=False)
                output, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=timesteps)
                currents[direction] = output + currents[direction] if index else output
            layers.append(torch.cat([currents[0], _in_order(currents[1], backward)], -1))
        return layers


def _in_order(words: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    return words.gather(1, order[..., None].expand_as(words))
