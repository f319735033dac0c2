"""The bidirectional language model: sentences in, the layers of all their words out."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.characters import (
    MAX_CHARACTERS_PER_TOKEN,
    N_CHARACTER_IDS,
    sentence_boundary_ids,
    sentences_to_character_ids,
)
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.projected_lstm import LstmState, ProjectedLstm
from elmo_tasks.bilm.weights import read_weights, write_weights

__all__ = ["Bilm", "BilmOutput"]


@dataclass(frozen=True)
class BilmOutput:
    """
    What a biLM says of a batch of sentences (section 3.1 of the paper), without the sentence boundaries.

    # Parameters

    layers : `Tuple[torch.Tensor, ...]`
        `n_layers + 1` tensors of shape `(batch_size, timesteps, 2 * projection_dim)`, forward units before backward
        ones: first the context-insensitive layer (the character encoder's vector, twice), then the LSTMs from the
        lowest to the highest. Zero where there is no word.
    mask : `torch.BoolTensor`
        Shape `(batch_size, timesteps)`: where there is a word.
    """

    layers: tuple[torch.Tensor, ...]
    mask: torch.Tensor


class Bilm(nn.Module):
    """
    The biLM of the paper (section 3): a character CNN, and over it, for each direction, LSTMs with a projected output
    and a residual connection between the layers.

    By default every sentence starts from the zero state: the vectors of a sentence depend on nothing but the sentence.

    # Parameters

    options : `BilmOptions`
        The biLM's shape. The weights are random: see `from_files`.
    stateful : `bool`, optional (default = `False`)
        Whether a batch starts in the state that the batch before left, row by row, as in bilm-tf and in AllenNLP. A
        vector then depends on all that was embedded before it; this is for comparison only. `reset_states` forgets.
    """

    # Differs from the paper: its code (bilm-tf) goes on from the state of the batch before, in training and in use.

    def __init__(self, options: BilmOptions, *, stateful: bool = False) -> None:
        super().__init__()
        self.options = options
        self.stateful = stateful
        self.character_encoder = CharacterEncoder(options)
        self.forward_layers = nn.ModuleList(self._lstms(go_forward=True))
        self.backward_layers = nn.ModuleList(self._lstms(go_forward=False))
        begin, end = sentence_boundary_ids()
        self.register_buffer("_begin_ids", begin, persistent=False)
        self.register_buffer("_end_ids", end, persistent=False)
        self._begin_ids: torch.Tensor
        self._end_ids: torch.Tensor
        self._states: list[LstmState] = []

    def _lstms(self, *, go_forward: bool) -> list[ProjectedLstm]:
        return [
            ProjectedLstm(
                input_dim=self.options.projection_dim,
                cell_dim=self.options.cell_dim,
                projection_dim=self.options.projection_dim,
                cell_clip=self.options.cell_clip,
                projection_clip=self.options.projection_clip,
                go_forward=go_forward,
            )
            for _ in range(self.options.n_layers)
        ]

    @classmethod
    def from_files(
        cls, options_file: str | PathLike[str], weight_file: str | PathLike[str], *, stateful: bool = False
    ) -> "Bilm":
        """
        Reads a biLM in the public format.

        # Parameters

        options_file, weight_file : `str`
            Local paths of the `options.json` and of the HDF5 file; resolve a URL with `cached_path` first.
        stateful : `bool`, optional (default = `False`)
            See the class.

        # Raises

        `ValueError`
            If a file is not what it should be, or the two do not fit; the message names file, key, expected and found.
        """
        bilm = cls(BilmOptions.from_file(options_file), stateful=stateful)
        bilm.load_weights(weight_file)
        return bilm

    def load_weights(self, weight_file: str | PathLike[str]) -> None:
        """
        Replaces the weights by those of a file in the public format (float16 or float32, compressed or not).

        # Raises

        `ValueError`
            If the file does not hold the weights of a biLM with these options.
        """
        self.load_state_dict(read_weights(weight_file, self.options))

    def save(
        self,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """
        Writes options and weights in the public format, which bilm-tf and AllenNLP read too.

        # Parameters

        options_file, weight_file : `str`
            Paths of the files to write.
        dtype : `torch.dtype`, optional (default = `torch.float32`)
            `torch.float32`, or `torch.float16` for half the size.
        """
        self.options.save(options_file)
        write_weights(weight_file, self.state_dict(), self.options, dtype=dtype)

    @property
    def num_layers(self) -> int:
        """Layers that come out: the LSTMs and the context-insensitive one below them."""
        return self.options.n_layers + 1

    def get_output_dim(self) -> int:
        """Units of each layer."""
        return self.options.output_dim

    def reset_states(self) -> None:
        """Forgets what was embedded before; only a stateful biLM remembers."""
        self._states = []

    def forward(self, inputs: torch.Tensor | Sequence[Sequence[str]]) -> BilmOutput:
        """
        # Parameters

        inputs : `Union[torch.Tensor, Sequence[Sequence[str]]]`
            Sentences as lists of words; or their character ids, of shape `(batch_size, timesteps, 50)`, zero where
            there is no word. No sentence boundaries in either: they are added here.

        # Returns

        `BilmOutput`
            The layers and the mask, on the device of the biLM.

        # Raises

        `ValueError`
            If the ids have another shape, are none of the public scheme, or a sentence has words after its padding.
        """
        character_ids = _checked(inputs) if isinstance(inputs, torch.Tensor) else sentences_to_character_ids(inputs)
        character_ids = character_ids.to(self._begin_ids.device)
        # Shape: (batch_size, timesteps)
        mask = (character_ids > 0).any(-1)
        if not mask.size(0):
            empty = self.character_encoder.projection.weight.new_zeros(*mask.shape, self.get_output_dim())
            return BilmOutput((empty,) * self.num_layers, mask)
        lengths = _lengths(mask)
        # Shape: (batch_size, timesteps + 2, projection_dim)
        words = self.character_encoder(self._with_boundaries(character_ids, lengths))
        packed = pack_padded_sequence(words, (lengths + 2).cpu(), batch_first=True, enforce_sorted=False)
        layers = [self._unpack(layer, packed, mask) for layer in self._packed_layers(packed)]
        return BilmOutput(tuple(layers), mask)

    def _with_boundaries(self, character_ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        # Shape: (batch_size, timesteps + 2, 50)
        bounded = nn.functional.pad(character_ids, (0, 0, 1, 1))
        bounded[:, 0] = self._begin_ids
        bounded[torch.arange(len(lengths), device=lengths.device), lengths + 1] = self._end_ids
        return bounded

    def _packed_layers(self, words: PackedSequence) -> list[torch.Tensor]:
        """The layers with boundaries, each of shape `(n_words, 2 * projection_dim)`, packed as `words`."""
        batch_sizes = words.batch_sizes.tolist()
        states = self._initial_states(words)
        forward = backward = words.data
        layers = [torch.cat([forward, backward], -1)]
        last_states: list[LstmState] = []
        for index, pair in enumerate(zip(self.forward_layers, self.backward_layers, strict=True)):
            outputs = []
            for lstm, below, state in zip(pair, (forward, backward), states[2 * index :], strict=False):
                # Shape: (n_words, projection_dim)
                output, last_state = lstm(below, batch_sizes, state)
                # The lowest LSTM reads the character encoder's vectors: no residual connection there.
                outputs.append(output + below if self.options.residual and index > 0 else output)
                last_states.append(last_state)
            forward, backward = outputs
            layers.append(torch.cat([forward, backward], -1))
        if self.stateful:
            self._remember(last_states, words)
        return layers

    def _initial_states(self, words: PackedSequence) -> list[LstmState]:
        """For each layer first the forward, then the backward LSTM's state, rows from the longest sentence down."""
        batch_size = int(words.batch_sizes[0])
        dims = (self.options.projection_dim, self.options.cell_dim)
        zeros = tuple(words.data.new_zeros(batch_size, dim) for dim in dims)
        if not self._states:
            return [(zeros[0], zeros[1])] * (2 * self.options.n_layers)
        assert words.sorted_indices is not None
        # Rows that no batch had yet start at zero.
        old = [[_grown(part.to(zero), batch_size) for part, zero in zip(s, zeros, strict=True)] for s in self._states]
        return [(output[words.sorted_indices], memory[words.sorted_indices]) for output, memory in old]

    def _remember(self, states: list[LstmState], words: PackedSequence) -> None:
        """Keeps the states in the order of the batch; rows beyond it stay as an earlier, larger batch left them."""
        assert words.unsorted_indices is not None
        order = words.unsorted_indices
        new = [(output.detach()[order], memory.detach()[order]) for output, memory in states]
        if self._states:
            n_new = len(order)
            new = [
                (torch.cat([output, old[0][n_new:].to(output)]), torch.cat([memory, old[1][n_new:].to(memory)]))
                for (output, memory), old in zip(new, self._states, strict=True)
            ]
        self._states = new

    @staticmethod
    def _unpack(layer: torch.Tensor, packed: PackedSequence, mask: torch.Tensor) -> torch.Tensor:
        """Back to shape `(batch_size, timesteps, dim)`, without boundaries, and zero where there is no word."""
        total_length = mask.size(1) + 2
        # Shape: (batch_size, timesteps + 2, dim)
        padded, _ = pad_packed_sequence(packed._replace(data=layer), batch_first=True, total_length=total_length)
        return padded[:, 1:-1] * mask.unsqueeze(-1)


def _checked(character_ids: torch.Tensor) -> torch.Tensor:
    if character_ids.dim() != 3 or character_ids.size(-1) != MAX_CHARACTERS_PER_TOKEN:
        raise ValueError(
            f"character ids must have the shape (batch_size, timesteps, {MAX_CHARACTERS_PER_TOKEN}), "
            f"but have {tuple(character_ids.shape)}"
        )
    if character_ids.dtype != torch.long:
        raise ValueError(f"character ids must be of the type torch.long, but are {character_ids.dtype}")
    if character_ids.numel():
        lowest, highest = (int(limit) for limit in character_ids.aminmax())
        if lowest < 0 or highest >= N_CHARACTER_IDS:
            raise ValueError(
                f"character ids must be from 0 to {N_CHARACTER_IDS - 1}, but go from {lowest} to {highest}: "
                "the token indexers 'elmo' and 'elmo_characters' make them"
            )
    return character_ids


def _lengths(mask: torch.Tensor) -> torch.Tensor:
    # Shape: (batch_size,)
    lengths = mask.sum(-1)
    # Shape: (batch_size, timesteps)
    expected = torch.arange(mask.size(1), device=mask.device) < lengths.unsqueeze(-1)
    if not torch.equal(mask, expected):
        row = int((mask != expected).any(-1).nonzero()[0])
        raise ValueError(
            f"the words of a sentence must come before its padding, but sentence {row} has words at positions "
            f"{mask[row].nonzero().flatten().tolist()}: pad on the right"
        )
    return lengths


def _grown(rows: torch.Tensor, n_rows: int) -> torch.Tensor:
    """The first `n_rows` rows, with rows of zeros added where there are fewer."""
    return nn.functional.pad(rows[:n_rows], (0, 0, 0, max(0, n_rows - rows.size(0))))
