"""Transformers of tiny checkpoints, and sentences as their pieces."""

import copy
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.transformer.checkpoint import load_network, read_config, read_pieces
from elmo_tasks.transformer.transformer import Transformer


@pytest.fixture
def make_transformer(checkpoint: Callable[[str], Path]) -> Callable[..., Transformer]:
    """Makes the frozen transformer of a family: `make_transformer("bert", pooling="first")`."""

    def make(family: str, **options: Any) -> Transformer:
        folder = str(checkpoint(family))
        network, config = copy.deepcopy(_loaded(folder))
        return Transformer(network, config, read_pieces(folder)[1], **options).eval().requires_grad_(False)

    return make


@cache
def _loaded(folder: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    config = read_config(folder)
    return load_network(folder, config), config


@pytest.fixture
def pieces_of(checkpoint: Callable[[str], Path]) -> Callable[..., torch.Tensor]:
    """The pieces of sentences as a model takes them: `pieces_of("bert", [["a", "word"], ["one"]])`."""

    def make(family: str, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        split = read_pieces(str(checkpoint(family)))[0]
        pieces = [split(sentence) for sentence in sentences]
        width = max((len(word) for sentence in pieces for word in sentence), default=0)
        tensor = torch.zeros(len(pieces), max(map(len, pieces)), width, dtype=torch.long)
        for row, sentence in enumerate(pieces):
            for column, word in enumerate(sentence):
                tensor[row, column, : len(word)] = torch.tensor(word) + 1
        return tensor

    return make
