"""The character encoder, which computes a word's context-insensitive vector from its characters."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear

from elmo_tasks.bilm.character_ids import BYTES, N_CHARACTER_IDS, PADDING_ID, WordRows
from elmo_tasks.bilm.frozen_value import FrozenValue
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.packed_linear import IS_GPU, packed_linear, type_of_results
from elmo_tasks.bilm.packing import on_device

__all__ = ["CharacterEncoder", "distinct_rows"]

_ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}
# Words that are encoded together: enough to be fast, few enough for small intermediate results.
_WORDS_AT_ONCE = {"cpu": 256}

_Linear = Callable[[torch.Tensor], torch.Tensor]
_LinearLayers = dict[nn.Module, _Linear]
"""A function for each module that is a linear layer, also for the filters of one width."""


class Highway(nn.Module):
    """
    The weights of one highway layer (Srivastava et al. 2015): `y = g * relu(W x + b) + (1 - g) * x`
    with `g = sigmoid(V x + c)`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dim, dim)
        self.carry = nn.Linear(dim, dim)

    def reset_parameters(self) -> None:
        """As in bilm-tf: a carry bias of -2 lets a new layer pass its input through."""
        dim = self.transform.in_features
        for layer, bias in ((self.transform, 0.0), (self.carry, -2.0)):
            nn.init.normal_(layer.weight, std=math.sqrt(1 / dim))
            nn.init.constant_(layer.bias, bias)


class CharacterEncoder(nn.Module):
    """
    The biLM's character CNN (section 3.4 of the paper): filters of several widths over the embedded
    characters, the maximum of each filter over the word, highway layers, and a linear projection to
    the LSTMs' input.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        dictionaries = options.dictionaries
        self.word_rows: WordRows = BYTES
        self._activation = _ACTIVATIONS[options.activation]
        self.embedding: nn.Embedding | None = None
        if dictionaries is None:
            # Id 0 marks positions without a word.
            self.embedding = nn.Embedding(N_CHARACTER_IDS, options.character_dim, padding_idx=0)
        elif dictionaries.n_characters:
            self.embedding = nn.Embedding(dictionaries.n_characters, options.character_dim)
        self._widths = [width for width, _ in options.filters]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(options.character_dim, n_filters_of_width, width)
            for width, n_filters_of_width in options.filters
        )
        self.highways = nn.ModuleList(Highway(options.n_filters) for _ in range(options.n_highway))
        word_dim = dictionaries.word_dim if dictionaries else 0
        self.projection = nn.Linear(options.n_filters + word_dim, options.projection_dim)
        self._packed: FrozenValue[_LinearLayers] = FrozenValue()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights with bilm-tf's scales."""
        if self.embedding is not None:
            nn.init.uniform_(self.embedding.weight, -1.0, 1.0)
            if self.embedding.padding_idx is not None:
                with torch.no_grad():
                    self.embedding.weight[self.embedding.padding_idx].zero_()
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            if self._activation is torch.relu:
                nn.init.uniform_(convolution.weight, -0.05, 0.05)
            else:
                nn.init.normal_(
                    convolution.weight, std=math.sqrt(1 / convolution.weight[0].numel())
                )
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            assert isinstance(highway, Highway)
            highway.reset_parameters()
        nn.init.normal_(self.projection.weight, std=math.sqrt(1 / self.projection.in_features))
        nn.init.zeros_(self.projection.bias)

    def encode(
        self, words: torch.Tensor, numbers: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        """
        The vectors of words, of shape `(n_words, width)`, in the order of their `numbers`: shape
        `(len(numbers), projection_dim)`. The ids may be on the CPU.
        """
        if not len(words):
            return self.projection.weight.new_zeros(
                0, self.projection.out_features, dtype=type_of_results(dtype)
            )
        # Shape: (n_words, 50)
        is_used = (words != PADDING_ID) & (words != 0)
        return self._encode_by_length(words, is_used, numbers, dtype)

    def _encode_by_length(
        self,
        words: torch.Tensor,
        is_used: torch.Tensor,
        numbers: torch.Tensor,
        dtype: torch.dtype,
        others: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """
        As `encode`, from ids that are padding unless `is_used`. Skips columns of padding. The
        projection reads `others`, of shape `(n_words, n_others)`, before the filters.
        """
        linear_layers = self._linear_layers(dtype)
        device = self.projection.weight.device
        n_at_once = _WORDS_AT_ONCE.get(device.type, 4096)
        # Shape: (n_words,)
        lengths = (is_used * torch.arange(1, words.size(1) + 1, device=words.device)).amax(-1)
        lengths, order = lengths.sort()
        # From the shortest to the longest.
        chunk_ends = [*range(n_at_once, len(words), n_at_once), len(words)]
        lengths_in_order = lengths.tolist()
        longest_words = [lengths_in_order[end - 1] for end in chunk_ends]
        chunks = torch.split(on_device(words[order], device), n_at_once)
        others_of_chunks: Sequence[torch.Tensor | None] = [None] * len(chunks)
        if others is not None:
            others_of_chunks = torch.split(others[order.to(device)], n_at_once)
        vectors = [
            self._encode(chunk, longest, linear_layers, dtype, others_of_chunk)
            for chunk, longest, others_of_chunk in zip(
                chunks, longest_words, others_of_chunks, strict=True
            )
        ]
        # Shape: (len(numbers),)
        rows = order.argsort()[numbers]
        return torch.cat(vectors)[on_device(rows, device)]

    def _encode(
        self,
        words: torch.Tensor,
        longest: int,
        linear_layers: _LinearLayers,
        dtype: torch.dtype,
        others: torch.Tensor | None,
    ) -> torch.Tensor:
        """
        Shape `(n_words, width)`, with padding after `longest` columns, to
        `(n_words, projection_dim)`.
        """
        assert self.embedding is not None
        pooled = []
        # Once for all filters. Shape: (n_words, n_columns, character_dim)
        characters = self.embedding(words[:, : longest + max(self._widths)]).to(
            type_of_results(dtype)
        )
        for width, convolution in zip(self._widths, self.convolutions, strict=True):
            # The maximum includes one window of only padding; further ones would have the same
            # value.
            # Shape: (n_words, n_windows, character_dim, width)
            windows = characters[:, : longest + width].unfold(1, width, 1)
            # A matrix product is several times as fast as a convolution here.
            # Shape: (n_words * n_windows, number)
            responses = linear_layers[convolution](windows.reshape(-1, windows.size(2) * width))
            pooled.append(responses.view(*windows.shape[:2], -1).amax(1))
        # The activations are monotonic, so it is enough to apply them to the maximum.
        # Shape: (n_words, n_filters)
        hidden = self._activation(torch.cat(pooled, -1))
        for highway in self.highways:
            assert isinstance(highway, Highway)
            transformed = torch.relu(linear_layers[highway.transform](hidden))
            gate = torch.sigmoid(linear_layers[highway.carry](hidden))
            hidden = torch.lerp(hidden, transformed, gate)
        if others is not None:
            hidden = torch.cat([others, hidden], -1)
        # Shape: (n_words, projection_dim)
        return linear_layers[self.projection](hidden)

    def _linear_layers(self, dtype: torch.dtype) -> _LinearLayers:
        parameters = list(self.parameters())
        if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
            self._packed.forget()
            return self._trained_layers(dtype)
        return self._packed(parameters, dtype, lambda: self._packed_layers(dtype))

    def _trained_layers(self, dtype: torch.dtype) -> _LinearLayers:
        modules = self._linear_modules()
        weights = [module.weight.flatten(1) for module in modules]
        biases = [module.bias for module in modules]
        converted = _converted([*weights, *biases], dtype)
        layers: _LinearLayers = {}
        for index, module in enumerate(modules):
            bias = converted[len(modules) + index]
            layers[module] = partial(linear, weight=converted[index], bias=bias)
        return layers

    def _packed_layers(self, dtype: torch.dtype) -> _LinearLayers:
        return {
            module: packed_linear(module.weight.flatten(1), module.bias, dtype=dtype)
            for module in self._linear_modules()
        }

    def _linear_modules(self) -> list[Any]:
        return [module for module in self.modules() if isinstance(module, nn.Conv1d | nn.Linear)]


def _converted(tensors: list[torch.Tensor], dtype: torch.dtype) -> list[torch.Tensor]:
    """
    The tensors in a type, all converted at once: on a GPU, each conversion takes the time of a
    kernel.
    """
    if all(tensor.dtype == dtype for tensor in tensors):
        return tensors
    together = torch.cat([tensor.flatten() for tensor in tensors]).to(dtype)
    sizes = [tensor.numel() for tensor in tensors]
    flat_tensors = torch.split(together, sizes)
    return [flat.view(tensor.shape) for flat, tensor in zip(flat_tensors, tensors, strict=True)]


def distinct_rows(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The distinct rows of an int64 matrix, of shape `(n_distinct, n_columns)`, and for each row of
    the matrix its index among them, of shape `(n_rows,)`.
    """
    if not ids.numel():
        # All rows without columns are equal.
        return ids[:1], torch.zeros(len(ids), dtype=torch.long, device=ids.device)
    if IS_GPU.get(ids.device.type):
        return _distinct_rows_on_gpu(ids)
    # Ten times as fast as torch.unique: each row is compared as one value, which is faster with
    # fewer bytes.
    rows = ids.numpy()
    if rows.min() >= -(2**15) and rows.max() < 2**15:
        rows = rows.astype(np.int16)
    bytes_of_row = rows.itemsize * rows.shape[1]
    values = np.ascontiguousarray(rows).view(f"V{bytes_of_row}").ravel()
    _, indices, positions = np.unique(values, return_index=True, return_inverse=True)
    return ids[torch.from_numpy(indices)], torch.from_numpy(positions)


def _distinct_rows_on_gpu(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Hashes are sorted several times as fast as rows. Should two rows have the same hash, the rows
    are sorted.
    """
    generator = torch.Generator(ids.device).manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, ids.shape[1:], generator=generator, device=ids.device)
    hashes, positions = torch.unique((ids * factors).sum(-1), return_inverse=True)
    # The index of a row with each hash. Shape: (n_distinct,)
    indices = torch.empty_like(hashes)
    indices.scatter_(0, positions, torch.arange(len(ids), device=ids.device))
    if torch.equal(ids[indices[positions]], ids):
        return ids[indices], positions
    distinct, positions = torch.unique(ids, dim=0, return_inverse=True)
    return distinct, positions
