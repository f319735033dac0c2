"""
AllenNLP's biLM, reimplemented in plain torch to compare speeds where AllenNLP is not installed.

It computes what `allennlp.modules.elmo._ElmoBiLm` computes for the first batch, in the same way:
it encodes each word of a padded batch separately, and runs the LSTMs word by word in each direction and layer.
"""

import torch
from torch import nn
from torch.nn.functional import linear

from elmo_tasks.bilm import Bilm

__all__ = ["PlainElmo"]


class PlainElmo(nn.Module):
    """Takes its weights from a biLM."""

    def __init__(self, bilm: Bilm) -> None:
        super().__init__()
        self.options = bilm.options
        encoder = bilm.character_encoder
        self.embedding, self.convolutions = encoder.embedding, encoder.convolutions
        self.highways, self.projection = encoder.highways, encoder.projection
        self.layers = nn.ModuleList(
            nn.ModuleList(_Direction(lstm, is_reversed) for is_reversed, lstm in enumerate(pair))
            for pair in zip(bilm.forward_layers, bilm.backward_layers, strict=True)
        )
        begin, end = bilm.word_rows.batch([bilm.word_rows.boundaries])[0]
        self.register_buffer("begin", begin)
        self.register_buffer("end", end)

    def forward(self, character_ids: torch.Tensor) -> list[torch.Tensor]:
        """
        The layers, each of shape `(batch_size, timesteps, 2 * projection_dim)` with zeros at padding, from ids of shape
        `(batch_size, timesteps, 50)`.
        """
        is_word = (character_ids > 0).any(-1)
        lengths = is_word.sum(1)
        bounded = self._bounded(character_ids, lengths)
        words = self._encoded(bounded)
        # The longest sentence first.
        order = lengths.argsort(descending=True, stable=True)
        steps = (lengths[order] + 2).tolist()
        currents = [words[order], words[order]]
        found = [torch.cat([words, words], -1)]
        for index, pair in enumerate(self.layers):
            for direction, lstm in enumerate(pair):
                output = lstm(currents[direction], steps)
                currents[direction] = output + currents[direction] if index else output
            found.append(torch.cat(currents, -1)[order.argsort()])
        return [layer[:, 1:-1] * is_word.unsqueeze(-1) for layer in found]

    def _bounded(self, character_ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The ids with two boundaries around each sentence, of shape `(batch_size, timesteps + 2, 50)`."""
        bounded = character_ids.new_zeros(character_ids.size(0), character_ids.size(1) + 2, character_ids.size(2))
        bounded[:, 1:-1] = character_ids
        bounded[:, 0] = self.begin
        bounded[torch.arange(len(bounded), device=bounded.device), lengths + 1] = self.end
        return bounded

    def _encoded(self, character_ids: torch.Tensor) -> torch.Tensor:
        activation = {"relu": torch.relu, "tanh": torch.tanh}[self.options.activation]
        # Shape: (n_words, character_dim, 50)
        embedded = self.embedding(character_ids.flatten(0, 1)).transpose(1, 2)
        # Shape: (n_words, n_filters)
        hidden = torch.cat([activation(convolution(embedded).amax(-1)) for convolution in self.convolutions], -1)
        for highway in self.highways:
            carry = torch.sigmoid(highway.carry(hidden))
            hidden = carry * torch.relu(highway.transform(hidden)) + (1 - carry) * hidden
        return self.projection(hidden).view(*character_ids.shape[:2], -1)


class _Direction(nn.Module):
    """One direction of one layer, with weights in the layout of torch's linear layers."""

    def __init__(self, lstm: nn.Module, is_reversed: bool) -> None:
        super().__init__()
        kernel, bias, projection = (weight.detach() for weight in lstm.recurrent_parameters())
        input_dim = len(kernel) - projection.size(1)
        self.is_reversed = bool(is_reversed)
        self.clips = lstm.cell_clip, lstm.projection_clip
        self.input_side = nn.Parameter(kernel[:input_dim].T.contiguous(), requires_grad=False)
        self.state_side = nn.Parameter(kernel[input_dim:].T.contiguous(), requires_grad=False)
        self.bias = nn.Parameter(bias.clone(), requires_grad=False)
        self.projection = nn.Parameter(projection.T.contiguous(), requires_grad=False)

    def forward(self, inputs: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """Maps `(batch_size, timesteps, input_dim)`, longest sentence first, to `(..., projection_dim)`."""
        cell_clip, projection_clip = self.clips
        batch_size, timesteps, _ = inputs.shape
        outputs = inputs.new_zeros(batch_size, timesteps, self.projection.size(0))
        output = inputs.new_zeros(batch_size, self.projection.size(0))
        memory = inputs.new_zeros(batch_size, self.projection.size(1))
        for step in reversed(range(timesteps)) if self.is_reversed else range(timesteps):
            # The number of sentences that have a word at this step.
            n_now = sum(length > step for length in lengths)
            products = linear(inputs[:n_now, step], self.input_side) + linear(
                output[:n_now], self.state_side, self.bias
            )
            input_gate, candidate, forget_gate, output_gate = products.chunk(4, -1)
            now = torch.sigmoid(input_gate) * torch.tanh(candidate) + torch.sigmoid(forget_gate) * memory[:n_now]
            if cell_clip is not None:
                now = now.clamp(-cell_clip, cell_clip)
            units = linear(torch.sigmoid(output_gate) * torch.tanh(now), self.projection)
            if projection_clip is not None:
                units = units.clamp(-projection_clip, projection_clip)
            # Like AllenNLP, keeps the state of all sentences, and copies it at each step.
            output, memory = output.clone(), memory.clone()
            output[:n_now], memory[:n_now] = units, now
            outputs[:n_now, step] = units
        return outputs
